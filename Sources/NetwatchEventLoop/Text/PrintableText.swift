// Text from outside, such as the label of a user's lane or a header field of a server, in a form for people. Every
// output for people uses this form: terminals, logs, the status page, the variables of hooks.

extension Unicode.Scalar {
    /// Whether the character is shown as itself: it has a visible form or is a space, and does not control a terminal,
    /// end a line or change the order of other characters.
    ///
    /// As with `%q` of Go and `repr` of Python, the general categories C (controls, formats, surrogates, private use,
    /// unassigned), Zl and Zp are not printable. Characters that have no visible form although they are in other
    /// categories, such as U+3164 and variation selectors, are not printable, either.
    ///
    /// There is no exception for the joiners U+200C and U+200D in words and emoji. Two texts that look the same must not
    /// differ, because a user selects a lane by its label and recognizes a host by its name. JSON has the exact text.
    package var isPrintable: Bool {
        if isASCII { return (0x20...0x7e).contains(value) }
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator:
            return false
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }

    /// The character as an escape of Swift: `\n`, `\r`, `\t`, or its number in hexadecimal, such as `\u{202E}`.
    fileprivate var escape: String {
        switch self {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: "\\u{\(String(value, radix: 16, uppercase: true))}"
        }
    }
}

extension StringProtocol {
    /// Whether all characters are printable.
    private var isPrintable: Bool {
        utf8.allSatisfy { (0x20...0x7e).contains($0) } || unicodeScalars.allSatisfy(\.isPrintable)
    }

    /// The text on one line, with an escape for each character that is not printable: `a\u{202E}b`.
    ///
    /// A printable text is unchanged. A backslash is not escaped, so that paths and patterns stay readable: the escapes
    /// make characters visible, and are not meant to be decoded.
    package var printable: String { isPrintable ? String(self) : printable(upTo: .max) }

    /// Returns the beginning of ``printable``. A character or an escape is not split.
    ///
    /// - Parameters:
    ///   - limit: The maximum length of the result, in bytes of UTF-8.
    ///   - others: Characters that are not escaped, such as line breaks. Default: none.
    package func printable(upTo limit: Int, keeping others: Set<Unicode.Scalar> = []) -> String {
        var result = String.UnicodeScalarView()
        var length = 0
        for scalar in unicodeScalars {
            let isShown = scalar.isPrintable || others.contains(scalar)
            let text = isShown ? String(scalar) : scalar.escape
            length += text.utf8.count
            guard length <= limit else { break }
            result.append(contentsOf: text.unicodeScalars)
        }
        return String(result)
    }

    /// The text as a literal of Swift: in quotation marks, and with an escape for each character that is not printable.
    package var printableLiteral: String { String(self).debugDescription.printable }
}
