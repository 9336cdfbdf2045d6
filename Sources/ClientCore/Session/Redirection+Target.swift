internal import Foundation

/// What a `Location` field means, seen from the URL that it came from: RFC 3986 §5, and RFC 9110 §10.2.2 for
/// fragments.
///
/// Strict where browsers guess: `http:x`, `http:/x` and `///x` name no host and are refused, and a backslash
/// is no slash. A user name or a password in it is dropped.
struct RedirectTarget: Sendable {
    let url: URL

    /// - Throws: `URLError.badServerResponse` and `URLError.unsupportedURL`, see ``Redirection``.
    init(_ location: String, from base: URL) throws(URLError) {
        guard let text = Self.escaped(location),
            let resolved = URL(string: text, relativeTo: base)?.absoluteURL
        else {
            throw Self.error(.badServerResponse, location)
        }
        let scheme = resolved.scheme?.lowercased()
        guard scheme == "http" || scheme == "https" else { throw Self.error(.unsupportedURL, location) }
        guard Self.isReachable(resolved), let target = Self.cleaned(resolved, from: base) else {
            throw Self.error(.badServerResponse, location)
        }
        url = target
    }

    private static func isReachable(_ url: URL) -> Bool {
        guard let host = url.host, !host.isEmpty else { return false }
        // A separator that hides in an escape is read differently by whoever looks up the name.
        let isName = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/?#@\\".utf8.contains($0) }
        return isName && (1...65535).contains(url.port ?? 80)
    }

    /// Without user and password, and with the base's fragment if it has none of its own.
    private static func cleaned(_ url: URL, from base: URL) -> URL? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.user = nil
        parts.password = nil
        guard parts.fragment == nil, let fragment = base.fragment(percentEncoded: true) else {
            return parts.url
        }
        return parts.string.flatMap { URL(string: "\($0)#\(fragment)") }
    }

    private static func error(_ code: URLError.Code, _ location: String) -> URLError {
        // As much as fits a line: the server chooses its length.
        let shown = location.prefix(200)
        let what = code == .unsupportedURL ? "is neither http nor https" : "is no URL that names a host"
        return URLError(
            code,
            userInfo: [NSLocalizedDescriptionKey: "the redirection's location `\(shown)` \(what)"]
        )
    }

    /// Percent-encodes what a URL may not contain, as servers expect clients to.
    ///
    /// `URL(string:)` would as well, but when it does so it encodes the escapes of the same part once more.
    /// In front of the path letters beyond ASCII stay: there they are a name, to become punycode.
    ///
    /// - Returns: `nil` for a backslash in front of the path: `h\@evil` is on `h` to browsers, on `evil` to RFCs.
    private static func escaped(_ location: String) -> String? {
        let bytes = Array(location.trimmingCharacters(in: CharacterSet(charactersIn: " \t")).utf8)
        let authority = authority(of: bytes)
        guard !bytes[authority].contains(UInt8(ascii: "\\")) else { return nil }
        var escaped: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            let isInAuthority = authority.contains(index)
            if isAllowed(byte, isInAuthority) && !(byte == UInt8(ascii: "%") && !isEscape(bytes[index...])) {
                escaped.append(byte)
            } else {
                escaped += "%".utf8
                escaped += hexadecimal(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// Where the host stands: between `//`, at the beginning or after a scheme, and the path.
    private static func authority(of bytes: [UInt8]) -> Range<Int> {
        let isDelimiter: (UInt8) -> Bool = { "/?#".utf8.contains($0) }
        let slash = bytes.firstIndex(where: isDelimiter) ?? bytes.endIndex
        guard bytes[slash...].starts(with: "//".utf8) else { return 0..<0 }
        guard slash == 0 || bytes[slash - 1] == UInt8(ascii: ":") else { return 0..<0 }
        let start = slash + 2
        return start..<(bytes[start...].firstIndex(where: isDelimiter) ?? bytes.endIndex)
    }

    private static func isAllowed(_ byte: UInt8, _ isInAuthority: Bool) -> Bool {
        switch byte {
        case 0x80...: isInAuthority
        case UInt8(ascii: "["), UInt8(ascii: "]"): isInAuthority
        case 0...0x20, 0x7f: false
        default: !"\"<>\\^`{|}".utf8.contains(byte)
        }
    }

    private static func isEscape(_ bytes: ArraySlice<UInt8>) -> Bool {
        let digits = bytes.dropFirst().prefix(2)
        return digits.count == 2 && digits.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }

    private static func hexadecimal(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
