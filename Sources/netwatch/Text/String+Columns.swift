extension String {
    /// Returns the text, or its beginning and an ellipsis if it is longer than `width`.
    func shortened(to width: Int) -> String {
        // Checking whether anything is left avoids counting a long text.
        dropFirst(width).isEmpty ? self : prefix(max(0, width - 1)) + "…"
    }

    /// Returns the text padded with spaces to a width. Longer text is returned unchanged.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
