internal import Foundation
internal import NetwatchTransport

/// The URL that a `Location` field refers to, resolved against the response's URL (RFC 3986 §5, and RFC 9110
/// §10.2.2 for fragments).
///
/// The rules are stricter than those of browsers:
///
/// - `http:x`, `http:/x` and `///x` are refused, because they name no host.
/// - A backslash does not count as a slash.
///
/// A user name and password in the field are dropped.
struct RedirectTarget: Sendable {
    /// The URL. A `%` that begins no escape is `%25` in it.
    let url: URL
    /// The text of the URL with each `%` that begins no escape as it is; `nil` if there is none. Servers expect such a
    /// `%` back unchanged. It occurs only in the path, the query and the fragment.
    let sentText: String?

    /// - Parameters:
    ///   - location: The value of the field, as an ``ExactText``.
    ///   - base: The URL of the response.
    ///   - baseText: The ``sentText`` of `base`.
    /// - Throws: `URLError.unsupportedURL` if the URL is neither http nor https, and `URLError.badServerResponse` if
    ///   the field is not a URL or names no valid host and port.
    init(_ location: String, from base: URL, sentAs baseText: String? = nil) throws(URLError) {
        guard let text = Self.escaped(location) else { throw Self.error(.badServerResponse, location) }
        let percents = BarePercents(in: [text, baseText ?? base.absoluteString])
        guard let start = baseText.map({ URL(string: percents.replaced(in: $0)) }) ?? base,
            let resolved = URL(string: percents.replaced(in: text), relativeTo: start)?.absoluteURL
        else {
            throw Self.error(.badServerResponse, location)
        }
        let scheme = resolved.scheme?.lowercased()
        guard scheme == "http" || scheme == "https" else { throw Self.error(.unsupportedURL, location) }
        guard Self.isReachable(resolved), let target = Self.cleaned(resolved, from: start),
            let url = URL(string: percents.encoded(in: target.absoluteString))
        else {
            throw Self.error(.badServerResponse, location)
        }
        self.url = url
        sentText = percents.restored(in: target.absoluteString)
    }

    private static func isReachable(_ url: URL) -> Bool {
        guard let host = url.host, !host.isEmpty else { return false }
        // Foundation decodes escapes in a host name, which can produce a separator such as `/`. Programs disagree on
        // the host that such a name means.
        let isName = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/?#@\\".utf8.contains($0) }
        return isName && (1...65535).contains(url.port ?? 80)
    }

    /// Returns the URL without user and password. A URL without a fragment gets the fragment of `base`.
    private static func cleaned(_ url: URL, from base: URL) -> URL? {
        guard let clean = url.withoutUserInfo else { return nil }
        guard clean.fragment == nil, let fragment = base.fragment(percentEncoded: true) else { return clean }
        return URL(string: "\(clean.absoluteString)#\(fragment)")
    }

    private static func error(_ code: URLError.Code, _ location: String) -> URLError {
        // Shortened, because the server may send a field of any length.
        let shown = RedactedURL.text(of: location).prefix(200)
        let what = code == .unsupportedURL ? "is not an http or https URL" : "is not a URL with a host"
        return URLError(code, message: "the redirect's location `\(shown)` \(what)")
    }

    /// Percent-encodes the characters that a URL must not contain, as servers expect of clients.
    ///
    /// `URL(string:)` also encodes them, but then encodes existing escapes in the same component a second time.
    /// A `%` that begins no escape is left to ``BarePercents``, except in the authority, where it is encoded.
    /// Letters beyond ASCII are not encoded in the authority, because Foundation converts the host name to punycode.
    ///
    /// - Returns: `nil` if the authority contains a backslash, because its host is ambiguous. In `h\@evil` the host is
    ///   `h` for browsers and `evil` by the RFCs.
    private static func escaped(_ location: String) -> String? {
        let bytes = ExactText.encode(location.trimmingCharacters(in: CharacterSet(charactersIn: " \t")))
        let authority = authority(of: bytes)
        guard !bytes[authority].contains(UInt8(ascii: "\\")) else { return nil }
        var escaped: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            let isInAuthority = authority.contains(index)
            let isBarePercent = isInAuthority && BarePercents.isBare(bytes[index...])
            if isAllowed(byte, isInAuthority), !isBarePercent {
                escaped.append(byte)
            } else {
                escaped += "%".utf8
                escaped += hexadecimal(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// Returns the range of the authority (user, host and port). It begins after the `//` that starts the text or
    /// follows the scheme, and ends before the path, the query or the fragment. The range is empty if there is no `//`.
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

    private static func hexadecimal(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
