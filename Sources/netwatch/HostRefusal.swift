internal import NetworkReachability

/// Says why a text is no host, to whoever wrote it.
enum HostRefusal {
    /// The reason why `NetworkHost` does not take a text.
    static func reason(for text: String) -> String {
        if text.isEmpty { return "it is empty" }
        if text.contains("://") { return "it is a URL; the host alone is wanted" }
        if text.contains("/") { return "it has a path or a prefix length" }
        if text.contains("@") { return "it has a user name" }
        if text.contains("[") || text.contains("]") { return "it has brackets" }
        if text.contains(where: \.isWhitespace) { return "it has a space in it" }
        if let address = IPAddress(text) { return reason(for: address) }
        if text.contains("%") { return "its zone is no interface of this machine" }
        if text.contains(":") { return "it has a port, or is no IPv6 address" }
        return reason(forName: text)
    }

    private static func reason(for address: IPAddress) -> String {
        if address.isLinkLocal { return "it is link-local and needs its zone, as in `fe80::1%eth0`" }
        return "it is not the address of one host"
    }

    private static func reason(forName text: String) -> String {
        let name = text.hasSuffix(".") ? text.dropLast() : text[...]
        if name.utf8.count > 253 { return "it is longer than 253 bytes" }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        if labels.contains(where: \.isEmpty) { return "it has an empty label" }
        if labels.contains(where: { $0.utf8.count > 63 }) { return "it has a label of more than 63 bytes" }
        if labels.contains(where: { $0.hasPrefix("-") || $0.hasSuffix("-") }) {
            return "a label begins or ends with a hyphen"
        }
        if !name.utf8.allSatisfy(\.isASCIIHostByte) {
            return "it has other characters than letters, digits, hyphens and dots; "
                + "international names are written as `xn--…`"
        }
        return "it looks like an address, but is none"
    }
}

extension UInt8 {
    fileprivate var isASCIIHostByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
        default: false
        }
    }
}
