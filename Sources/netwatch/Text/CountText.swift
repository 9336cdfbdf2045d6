/// Formats numbers of things for people.
enum CountText {
    /// `1 request`, `3 requests`
    ///
    /// - Parameter plural: Default: the singular with an `s`.
    static func format(_ count: Int, _ singular: String, plural: String? = nil) -> String {
        "\(count) \(count == 1 ? singular : plural ?? singular + "s")"
    }
}
