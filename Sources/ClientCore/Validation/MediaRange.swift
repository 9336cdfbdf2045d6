internal import NetwatchTransport

/// A media type or a pattern for media types, without parameters and in lower case.
struct MediaRange: Hashable {
    let type: String
    let subtype: String

    /// Returns `nil` if the field is not a type and a subtype (RFC 9110 §8.3.1), for example a list of types.
    init?(_ field: String) {
        let essence = MediaTypeParameters.trimmed(field.prefix { $0 != ";" })
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPToken.isValid(String($0)) }) else { return nil }
        type = parts[0].lowercased()
        subtype = parts[1].lowercased()
    }

    /// Whether the pattern matches every type.
    var isWildcard: Bool { type == "*" && subtype == "*" }

    /// Whether a type matches the pattern: `*/*`, `type/*` or `*/subtype`.
    func matches(_ other: MediaRange) -> Bool {
        (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
    }
}
