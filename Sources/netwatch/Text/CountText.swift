/// Formatting of counts for people.
enum CountText {
    /// Returns a count with its noun: `1 request`, `3 requests`.
    ///
    /// - Parameter plural: Default: the singular followed by `s`.
    static func format(_ count: Int, _ singular: String, plural: String? = nil) -> String {
        "\(count) \(count == 1 ? singular : plural ?? singular + "s")"
    }
}
