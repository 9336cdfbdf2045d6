extension String {
    /// Returns the text, or its beginning and a mark if it is longer than `width`.
    ///
    /// - Parameter mark: Default: an ellipsis.
    func shortened(to width: Int, with mark: String = "…") -> String {
        // `dropFirst` visits at most `width` characters, while `count` would visit all characters of a long text.
        dropFirst(width).isEmpty ? self : prefix(max(0, width - mark.count)) + mark
    }

    /// Returns the text, or its beginning and its end with an ellipsis between them if it is longer than `width`.
    ///
    /// - Parameter beginning: The length of the beginning. Default: half of the width.
    func shortenedInMiddle(to width: Int, beginning: Int? = nil) -> String {
        guard !dropFirst(width).isEmpty else { return self }
        let beginning = beginning ?? width / 2
        return "\(prefix(beginning))…\(suffix(max(0, width - beginning - 1)))"
    }

    /// Returns a URL without a scheme. If it is longer than `width`, returns the host and the end of the path with an
    /// ellipsis between them. At least a quarter of the width is left for the end.
    func shortenedURL(to width: Int) -> String {
        let host = prefix { $0 != "/" }.count
        return shortenedInMiddle(to: width, beginning: min(host + 1, width * 3 / 4))
    }

    /// The URL without its scheme.
    var withoutScheme: String {
        firstRange(of: "://").map { String(self[$0.upperBound...]) } ?? self
    }

    /// Returns the lines of the text if no line may be longer than `width`. The text is divided at spaces; lines after
    /// the first are indented. A longer word, such as a URL, is not divided.
    ///
    /// - Parameters:
    ///   - width: The maximum length; `nil` for no limit.
    ///   - indent: The number of spaces before each line but the first. The text is not divided before this column.
    func wrapped(to width: Int?, indent: Int) -> [String] {
        guard let width, !dropFirst(width).isEmpty, width > indent else { return [self] }
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
