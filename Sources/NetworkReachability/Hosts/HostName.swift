/// Validation of host names (RFC 1123 §2.1).
enum HostName {
    /// Validates a name. Returns it in lower case, without a trailing dot.
    static func normalized(_ text: String) throws(InvalidHost) -> String {
        if text.isEmpty { throw InvalidHost(text, .empty) }
        if let reason = rejectionOfForm(text) { throw InvalidHost(text, reason) }
        var name = text.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        guard name.utf8.count <= 253 else { throw InvalidHost(text, .tooLong) }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            if let reason = reasonAgainst(label) { throw InvalidHost(text, reason) }
        }
        guard !isNumber(labels.last!) else { throw InvalidHost(text, .mistypedAddress) }
        return name
    }

    /// Returns the specific reason if the text contains a common mistake, such as a URL or a port; otherwise `nil`.
    private static func rejectionOfForm(_ text: String) -> InvalidHost.Reason? {
        if text.contains("://") { return .scheme }
        if text.contains(where: { "/?#".contains($0) }) { return .path }
        if text.contains("@") { return .user }
        if text.contains(where: { "[]".contains($0) }) { return .brackets }
        if text.contains("%") { return text.contains(":") ? .unknownZone : .zone }
        switch text.count(where: { $0 == ":" }) {
        case 0: return nil
        case 1: return .port
        default: return .mistypedAddress
        }
    }

    /// Whether a label is a decimal or hexadecimal number. If the last label of a name is a number, resolvers read
    /// the name as an address, by the rules of `inet_aton(3)`.
    private static func isNumber(_ label: Substring) -> Bool {
        label.allSatisfy(\.isNumber) || label.hasPrefix("0x") && label.dropFirst(2).allSatisfy(\.isHexDigit)
    }

    private static func reasonAgainst(_ label: Substring) -> InvalidHost.Reason? {
        guard (1...63).contains(label.utf8.count) else { return .labelLength }
        guard label.utf8.allSatisfy(isAllowed) else { return .character }
        return label.first == "-" || label.last == "-" ? .hyphen : nil
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }
}
