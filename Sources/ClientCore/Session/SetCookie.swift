internal import Foundation

/// One `Set-Cookie` field as RFC 6265 §5.2 reads it, before anyone asks whether the server may set it.
///
/// The parser is the one that RFC wants of clients: it takes what servers send, not what they should send.
/// It follows draft-ietf-httpbis-rfc6265bis where that is stricter, and says so there.
struct SetCookie: Equatable, Sendable {
    var name: String
    var value: String
    /// When the cookie goes; `nil` for the end of the session.
    var expires: Date?
    /// What `Domain` says, lower-case and without its leading dot; `nil` when it says nothing.
    var domain: String?
    /// What `Path` says; `nil` for the path of the URL that set the cookie.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false

    /// Name and value, together (6265bis §5.6).
    static let maximumBytes = 4096
    /// A longer attribute counts as absent (6265bis §5.6).
    static let maximumAttributeBytes = 1024
    /// No cookie lives longer (6265bis §5.5).
    static let maximumAge: TimeInterval = 400 * 24 * 60 * 60

    /// - Parameters:
    ///   - field: The value of one `Set-Cookie` field. Several of them never share a line, since dates
    ///     contain commas (RFC 6265 §3).
    ///   - now: When it came.
    /// - Returns: `nil` for what is no cookie: no `=`, no name, control characters, too long. A name may be
    ///   missing in 6265bis, but servers disagree about what they get back then.
    init?(_ field: String, at now: Date) {
        guard !field.unicodeScalars.contains(where: Self.isControl) else { return nil }
        var parts = field.split(separator: ";", omittingEmptySubsequences: false).makeIterator()
        guard let pair = parts.next(), let equals = pair.firstIndex(of: "=") else { return nil }
        name = Self.trimmed(pair[..<equals])
        value = Self.trimmed(pair[equals...].dropFirst())
        guard !name.isEmpty, name.utf8.count + value.utf8.count <= Self.maximumBytes else { return nil }
        var lifetime = Lifetime()
        while let part = parts.next() { read(attribute: part, &lifetime, now) }
        expires = lifetime.end
    }

    /// What the two attributes for it say; `Max-Age` wins, wherever it stands.
    private struct Lifetime {
        var maxAge: Date?
        var expires: Date?

        var end: Date? { maxAge ?? expires }
    }

    /// A later attribute replaces an earlier one of the same name; unknown ones say nothing.
    private mutating func read(attribute: Substring, _ lifetime: inout Lifetime, _ now: Date) {
        let parts = attribute.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let text = parts.count == 2 ? Self.trimmed(parts[1]) : ""
        guard text.utf8.count <= Self.maximumAttributeBytes else { return }
        switch Self.trimmed(parts[0]).lowercased() {
        case "expires": lifetime.expires = Self.expires(text, at: now) ?? lifetime.expires
        case "max-age": lifetime.maxAge = Self.maxAge(text, at: now) ?? lifetime.maxAge
        case "domain": domain = Self.domain(text)
        case "path": path = text.hasPrefix("/") ? text : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        default: break
        }
    }

    private static func expires(_ text: String, at now: Date) -> Date? {
        CookieDate(text).map { min($0.date, now.addingTimeInterval(maximumAge)) }
    }

    /// Zero and less is the end of the cookie. A number beyond `Int` is only very large.
    private static func maxAge(_ text: String, at now: Date) -> Date? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard digits.startIndex == text.startIndex else { return .distantPast }
        let seconds = Int(digits) ?? .max
        return seconds == 0 ? .distantPast : now.addingTimeInterval(min(TimeInterval(seconds), maximumAge))
    }

    /// An empty `Domain` is none (RFC 6265 §5.2.3).
    private static func domain(_ text: String) -> String? {
        let name = text.hasPrefix(".") ? String(text.dropFirst()) : text
        return name.isEmpty ? nil : name.lowercased()
    }

    /// The tabulator is white space here (6265bis §5.6).
    private static func isControl(_ character: Unicode.Scalar) -> Bool {
        (character.value < 0x20 && character != "\t") || character.value == 0x7f
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        text.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
    }
}
