extension String {
    /// Returns the text, or its beginning and a mark if it is longer than `width`.
    ///
    /// - Parameter mark: Default: an ellipsis.
    func shortened(to width: Int, with mark: String = "…") -> String {
        // `dropFirst` visits at most `width` characters, while `count` would visit all characters of a long text.
        dropFirst(width).isEmpty ? self : prefix(max(0, width - mark.count)) + mark
    }

    /// Returns the URL. If it is longer than `width`, leaves the scheme out. If the rest is still longer, returns the
    /// host and the end of the path with an ellipsis between them. At least a quarter of the width is left for the end.
    func shortenedURL(to width: Int) -> String {
        guard !dropFirst(width).isEmpty else { return self }
        let address = firstRange(of: "://").map { self[$0.upperBound...] } ?? self[...]
        guard !address.dropFirst(width).isEmpty else { return String(address) }
        let host = address.prefix { $0 != "/" }.count
        let beginning = min(host + 1, width * 3 / 4)
        return "\(address.prefix(beginning))…\(address.suffix(max(0, width - beginning - 1)))"
    }

    /// Returns the lines of the text if no line may be longer than `width`. The text is divided at spaces; lines after
    /// the first are indented. A longer word, such as a URL, is not divided.
    ///
    /// - Parameter indent: The number of spaces before each line but the first.
    func wrapped(to width: Int, indent: Int) -> [String] {
        guard !dropFirst(width).isEmpty, width > indent else { return [self] }
        let margin = String(repeating: " ", count: indent)
        let first = prefix(indent)
        var lines = [String(first)]
        for word in dropFirst(indent).split(separator: " ", omittingEmptySubsequences: false) {
            let isStart = lines[lines.count - 1].count <= indent
            if !isStart, lines[lines.count - 1].count + 1 + word.count > width {
                lines.append(margin + word)
            } else {
                lines[lines.count - 1] += (isStart ? "" : " ") + word
            }
        }
        return lines
    }

    /// Returns the text padded with spaces to a width. Longer text is returned unchanged.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
