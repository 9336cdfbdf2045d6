internal import NetwatchTransport

/// A media type or a pattern for media types, without parameters and in lower case.
struct MediaRange: Hashable {
    let type: String
    let subtype: String

    /// Parses a media type; parameters are ignored. Returns `nil` if the text is not one type and subtype (RFC 9110
    /// §8.3.1), for example a list of types.
    init?(_ field: String) {
        let essence = MediaTypeParameters.trimmed(field.prefix { $0 != ";" })
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPToken.isValid(String($0)) }) else { return nil }
        type = parts[0].lowercased()
        subtype = parts[1].lowercased()
    }

    /// Whether the pattern matches every type.
    var isWildcard: Bool { type == "*" && subtype == "*" }

    /// Returns whether a media type matches this pattern. `*` matches every type or subtype.
    func matches(_ other: MediaRange) -> Bool {
        (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
    }
}
