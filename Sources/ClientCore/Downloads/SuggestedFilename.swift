internal import Foundation
internal import FoundationNetworking

/// Creates a safe file name for a download from the server's suggestion.
///
/// The name is the first of these that is not empty:
///
/// 1. the file name in `Content-Disposition`
/// 2. the last component of the URL's path
/// 3. `download`, with an extension for the content type
///
/// The name is safe in these ways:
///
/// - It contains no `/`, no control characters, and no characters that change the text direction.
/// - It does not begin with a dot (hidden files), a dash (command options) or a tilde (home directories).
/// - It has at most 255 bytes, the limit of Linux's file systems. A longer name is shortened before its extension.
///
/// Foundation's `suggestedFilename` is not used: on Linux it ignores `filename*` and the URL, and can return `..`.
enum SuggestedFilename {
    private static let maximumBytes = 255
    /// The maximum length of an extension in bytes, including its dot. Longer text after the last dot does not count as
    /// an extension.
    private static let maximumExtensionBytes = 32

    /// The extensions of content types.
    private static let extensions = [
        "application/gzip": "gz", "application/json": "json", "application/pdf": "pdf",
        "application/xml": "xml", "application/zip": "zip", "audio/mpeg": "mp3", "image/gif": "gif",
        "image/jpeg": "jpg", "image/png": "png", "image/svg+xml": "svg", "image/webp": "webp",
        "text/css": "css", "text/csv": "csv", "text/html": "html", "text/javascript": "js",
        "text/plain": "txt", "text/xml": "xml", "video/mp4": "mp4",
    ]

    /// Returns the name for a response.
    static func of(_ response: HTTPURLResponse) -> String {
        of(
            contentDisposition: response.value(forHTTPHeaderField: "Content-Disposition"),
            url: response.url,
            contentType: response.value(forHTTPHeaderField: "Content-Type")
        )
    }

    /// Returns the name for the given response fields.
    ///
    /// - Parameters:
    ///   - contentDisposition: The field as the server sent it.
    ///   - url: The URL of the response.
    ///   - contentType: The field as the server sent it.
    static func of(contentDisposition: String?, url: URL?, contentType: String?) -> String {
        contentDisposition.flatMap(ContentDisposition.filename).flatMap(sanitized)
            ?? (url?.lastPathComponent).flatMap(sanitized)
            ?? fallback(contentType)
    }

    private static func fallback(_ contentType: String?) -> String {
        let type = contentType?.split(separator: ";").first?.trimmingCharacters(in: .whitespaces).lowercased()
        return type.flatMap { extensions[$0] }.map { "download.\($0)" } ?? "download"
    }

    /// Returns the safe part of a name; `nil` if it is empty.
    private static func sanitized(_ text: String) -> String? {
        // Backslashes count as separators, too, because servers on Windows may send whole paths.
        let last = text.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }
            .last!
        let visible = last.filter { !isUnsafe($0) }.drop { ".-~ ".unicodeScalars.contains($0) }
        let name = String(String.UnicodeScalarView(visible)).trimmingCharacters(in: .whitespaces)
        return name.isEmpty ? nil : shortened(name)
    }

    /// Returns whether a scalar is a control character, a line separator, or changes the text direction. A change of
    /// direction can make `gpj.exe` look like `exe.jpg`.
    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > maximumBytes else { return name }
        let dot = name.unicodeScalars.lastIndex(of: ".") ?? name.endIndex
        let suffix = name[dot...].utf8.count <= maximumExtensionBytes ? name[dot...] : ""
        return prefix(of: name, bytes: maximumBytes - suffix.utf8.count) + suffix
    }

    /// Returns the longest prefix with at most the given number of bytes in UTF-8, without splitting a scalar.
    private static func prefix(of text: String, bytes: Int) -> String {
        var prefix = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            if count > bytes { break }
            prefix.append(scalar)
        }
        return String(prefix)
    }
}

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
