internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A redirect, and the request that follows it.
///
/// The method of the next request is the one that browsers choose (Fetch, "HTTP-redirect fetch"; RFC 9110 §15.4
/// allows it):
///
/// | status | next method |
/// |---|---|
/// | 301, 302 | GET after POST; otherwise the same method |
/// | 303 | HEAD after HEAD; otherwise GET |
/// | 307, 308 | the same method |
///
/// Other statuses are not redirects: 300, 304, 305 and 306 must not be followed automatically.
struct Redirection: Sendable {
    /// The maximum number of redirects that an attempt follows, the same as URLSession's.
    static let limit = 16

    /// The next request. It contains no cookies from the cookie jar, because those depend on the URL.
    let request: URLRequest
    /// The text of the next URL as it is sent, if it differs from the URL; see ``RedirectTarget/sentText``.
    let sentText: String?
    /// Whether the next request goes to another origin, that is, to another scheme, host or port. Credentials must not
    /// be sent there. ``request`` no longer contains the fields of ``SecretHeaderFields/originBound``. It keeps all
    /// other fields, like URLSession.
    let crossesOrigin: Bool
    /// Whether the next request sends the body again. Sending fails if the body cannot be read a second time.
    let keepsBody: Bool

    /// - Parameters:
    ///   - request: The request that the response belongs to, without the fields that the session adds.
    ///   - sentText: The text of its URL as it was sent, if it differs from the URL.
    ///   - status: The status of the response.
    ///   - location: The response's `Location` field. If it is missing or empty, the response is not a redirect. By RFC
    ///     3986 an empty reference means the same URL, but libcurl and browsers ignore it.
    /// - Returns: `nil` if the response is not a redirect that is followed.
    /// - Throws: `URLError.badServerResponse` for a location that is not a URL or names no host, and
    ///   `URLError.unsupportedURL` for one that is neither http nor https.
    init?(
        of request: URLRequest,
        sentAs sentText: String? = nil,
        status: Int,
        location: String?
    ) throws(URLError) {
        guard Self.isFollowed(status) else { return nil }
        guard let base = request.url, let location, !location.isEmpty else { return nil }
        let target = try RedirectTarget(location, from: base, sentAs: sentText)
        self.sentText = target.sentText
        crossesOrigin = !target.url.hasSameOrigin(as: base)
        let oldMethod = request.httpMethod ?? "GET"
        let method = Self.method(after: oldMethod, status)
        keepsBody = method == oldMethod
        var next = request
        next.url = target.url
        if !keepsBody { next.becomeBodiless(method) }
        if crossesOrigin { next.remove(SecretHeaderFields.originBound) }
        self.request = next
    }

    /// Returns whether a response with this status is a redirect that is followed.
    static func isFollowed(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

    private static func method(after method: String, _ status: Int) -> String {
        switch status {
        case 301, 302: method == "POST" ? "GET" : method
        case 303: method == "HEAD" ? "HEAD" : "GET"
        default: method
        }
    }
}

extension URLRequest {
    /// The fields that describe a body (RFC 9110 §15.4).
    private static let bodyFields: Set<String> = [
        "content-type", "content-length", "content-encoding", "content-language", "content-location",
        "transfer-encoding", "digest", "last-modified", "expect",
    ]

    fileprivate mutating func becomeBodiless(_ method: String) {
        httpMethod = method
        // Foundation stores the body's data and stream in one place, so this also removes a stream.
        httpBody = nil
        remove(Self.bodyFields)
    }

    /// Removes header fields.
    ///
    /// - Parameter names: The names in lower case.
    fileprivate mutating func remove(_ names: Set<String>) {
        for name in (allHTTPHeaderFields ?? [:]).keys where names.contains(name.lowercased()) {
            setValue(nil, forHTTPHeaderField: name)
        }
    }
}

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

/// The `%` characters of URLs that begin no escape, for example in `/100%/zz`. Foundation's `URL` cannot contain them,
/// but a server expects them back unchanged.
///
/// While Foundation resolves a URL, an escape that occurs nowhere else stands in for each of them.
struct BarePercents {
    /// The escape that takes the place of a bare `%`.
    private let standIn: String
    /// Whether the texts contain a bare `%`, and ``standIn`` can be distinguished from their other escapes.
    private let areKept: Bool

    /// - Parameter texts: All texts whose bare `%` characters are replaced. If they contain every escape from `%80` to
    ///   `%FF`, none stands in, and a bare `%` becomes `%25`.
    init(in texts: [String]) {
        let free = texts.contains(where: Self.occur) ? Self.escape(absentFrom: texts) : nil
        standIn = free ?? Self.encoded
        areKept = free != nil
    }

    /// Returns a text that Foundation's `URL` can contain.
    func replaced(in text: String) -> String {
        guard Self.occur(in: text) else { return text }
        let bytes = Array(text.utf8)
        let replaced = bytes.indices.flatMap { index in
            Self.isBare(bytes[index...]) ? Array(standIn.utf8) : [bytes[index]]
        }
        return String(decoding: replaced, as: UTF8.self)
    }

    /// Returns the text with `%25` in place of the stand-ins.
    func encoded(in text: String) -> String {
        areKept ? text.replacing(standIn, with: Self.encoded) : text
    }

    /// Returns the text with the bare `%` characters; `nil` if it has none.
    func restored(in text: String) -> String? {
        areKept && text.contains(standIn) ? text.replacing(standIn, with: "%") : nil
    }

    private static let encoded = "%25"

    private static func escape(absentFrom texts: [String]) -> String? {
        let texts = texts.map { $0.uppercased() }
        return (0x80...0xff).lazy.map { "%" + String($0, radix: 16, uppercase: true) }
            .first { escape in !texts.contains { $0.contains(escape) } }
    }

    private static func occur(in text: String) -> Bool {
        var rest = Substring(text).utf8
        while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
            rest = rest[percent...]
            if isBare(rest) { return true }
            rest = rest.dropFirst()
        }
        return false
    }

    /// Whether the bytes begin with a `%` that two hexadecimal digits do not follow.
    static func isBare(_ bytes: some Collection<UInt8>) -> Bool {
        guard bytes.first == UInt8(ascii: "%") else { return false }
        let digits = bytes.dropFirst().prefix(2)
        return digits.count < 2 || !digits.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }
}
