/// Parses the file name in a `Content-Disposition` field (RFC 6266).
enum ContentDisposition {
    /// Returns `filename*` if it can be decoded, otherwise `filename`; `nil` if both are missing. The name is as the
    /// server sent it: ``SuggestedFilename`` makes it safe.
    static func filename(in value: String) -> String? {
        let parameters = parameters(of: value)
        return parameters["filename*"].flatMap(extended) ?? parameters["filename"]
    }

    /// Returns the parameters by their lowercase names. If a name occurs twice, the first parameter is used. Parsing
    /// stops at invalid syntax.
    private static func parameters(of value: String) -> [String: String] {
        var rest = value.unicodeScalars[...].drop { $0 != ";" }
        var parameters: [String: String] = [:]
        while rest.popFirst() == ";" {
            let name = take(&rest) { $0 != "=" && $0 != ";" }
            guard rest.first == "=" else { continue }
            rest.removeFirst()
            rest = rest.drop(while: isBlank)
            let text = rest.first == "\"" ? quoted(&rest) : take(&rest) { $0 != ";" }
            guard let text else { break }
            let key = name.lowercased()
            if parameters[key] == nil { parameters[key] = text }
            rest = rest.drop { $0 != ";" }
        }
        return parameters
    }

    /// Removes the scalars at the start for which `isPart` is true. Returns them without white space at both ends.
    private static func take(
        _ rest: inout Substring.UnicodeScalarView,
        while isPart: (Unicode.Scalar) -> Bool
    ) -> String {
        let part = rest.prefix(while: isPart)
        rest = rest[part.endIndex...]
        let text = part.drop(while: isBlank)
        return String(String.UnicodeScalarView(text.reversed().drop(while: isBlank).reversed()))
    }

    /// Removes the quoted string at the start and returns its contents; `nil` if the closing quotation mark is missing.
    private static func quoted(_ rest: inout Substring.UnicodeScalarView) -> String? {
        rest.removeFirst()
        var text = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == "\"" { return String(text) }
            guard let next = scalar == "\\" ? rest.popFirst() : scalar else { return nil }
            text.append(next)
        }
        return nil
    }

    /// Decodes an extended value such as `UTF-8'en'na%C3%AFve.txt` (RFC 8187 §3.2); returns `nil` if it is invalid.
    /// ISO-8859-1 is also accepted, because the earlier RFC 5987 allowed it.
    private static func extended(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = percentDecoded(parts[2]) else { return nil }
        return switch parts[0].lowercased() {
        case "utf-8": String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: nil
        }
    }

    private static func percentDecoded(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).isASCII
            ? Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init) : nil
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
}
