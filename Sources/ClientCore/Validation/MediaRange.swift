internal import NetwatchTransport

/// A media type without its parameters, or a pattern of them, in lower case.
struct MediaRange: Hashable {
    let type: String
    let subtype: String

    /// `nil` for what is no type and subtype (RFC 9110 §8.3.1), a list of types among others.
    init?(_ field: String) {
        let essence = MediaTypeParameters.trimmed(field.prefix { $0 != ";" })
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPToken.isValid(String($0)) }) else { return nil }
        type = parts[0].lowercased()
        subtype = parts[1].lowercased()
    }

    /// Whether every type will do.
    var isWildcard: Bool { type == "*" && subtype == "*" }

    /// Whether a type is of this pattern: `*/*`, `type/*` and `*/subtype` leave it open.
    func matches(_ other: MediaRange) -> Bool {
        (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
    }
}
