extension String {
    /// Returns the text, or its beginning and a mark if it is longer than `width`.
    ///
    /// - Parameter mark: Default: an ellipsis.
    func shortened(to width: Int, with mark: String = "…") -> String {
        // `dropFirst` visits at most `width` characters, while `count` would visit all characters of a long text.
        dropFirst(width).isEmpty ? self : prefix(max(0, width - mark.count)) + mark
    }

    /// Returns the text padded with spaces to a width. Longer text is returned unchanged.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
