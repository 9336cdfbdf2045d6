extension StringProtocol {
    /// Returns the text on one line: line breaks and control characters become spaces, because they could start another
    /// entry or affect a terminal. Cuts the text between characters of Unicode.
    ///
    /// - Parameter limit: The maximum length of the result, in bytes of UTF-8.
    func oneLine(upTo limit: Int) -> String {
        var line = String.UnicodeScalarView()
        var length = 0
        for scalar in unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control
            let printable = isControl || scalar == "\u{2028}" || scalar == "\u{2029}" ? " " : scalar
            length += UTF8.width(printable)
            guard length <= limit else { break }
            line.append(printable)
        }
        return String(line)
    }
}
