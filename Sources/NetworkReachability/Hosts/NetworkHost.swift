internal import NetwatchEventLoop

/// Something whose reachability can be watched: a host name or an address literal.
public struct NetworkHost: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case address(IPAddress)
        case name(String)
    }

    let kind: Kind

    /// The host as it was given.
    public let text: String

    /// What ``init(_:)`` accepts, in words for a message to a person.
    public static let acceptedForms =
        "a host name (`example.com`) or an address (`192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`), "
        + "without scheme, port, path or brackets"

    /// Makes a host of a name or an address literal.
    ///
    /// Names follow RFC 1123 §2.1 and RFC 1035 §2.3.4: labels of 1 to 63 letters, digits, hyphens or
    /// underscores, 253 bytes in all, a dot at the end allowed; internationalised names in their `xn--`
    /// form. A last label of digits only is refused, because it can only be a mistyped address.
    ///
    /// Refused is anything else: a URL, a port, an empty string; an address that is not one host's
    /// (multicast, `255.255.255.255`, `0.0.0.0`, `::`); and a link-local IPv6 address without the zone that
    /// tells its link apart from the others (RFC 4007 §11), which is looked up in the process's own network
    /// namespace. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is the IPv4 address.
    ///
    /// - Throws: ``InvalidHost``, which says what is wrong.
    public init(validating text: String) throws(InvalidHost) {
        self.text = text
        if let address = IPAddress(text)?.unmapped {
            if let reason = address.reasonAgainstHost { throw InvalidHost(text, reason) }
            kind = .address(address)
        } else {
            kind = .name(try HostName.normalized(text))
        }
    }

    /// Makes a host of what ``init(validating:)`` accepts, else `nil`.
    public init?(_ text: String) {
        guard let host = try? NetworkHost(validating: text) else { return nil }
        self = host
    }
}

extension NetworkHost: CustomStringConvertible {
    /// The host as it was given.
    public var description: String { text }
}

extension NetworkHost {
    /// Two spellings of one name (`Example.com`, `example.com.`) are one host.
    public static func == (left: NetworkHost, right: NetworkHost) -> Bool {
        left.kind == right.kind
    }

    /// Two spellings of one name hash alike.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
    }
}

extension IPAddress {
    /// The IPv4 address that an IPv4-mapped one stands for (RFC 4291 §2.5.5.2), which is the one that sockets
    /// then connect to; else the address itself.
    fileprivate var unmapped: IPAddress {
        let prefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]
        guard family == .ipv6, bytes.starts(with: prefix) else { return self }
        return IPAddress(bytes: bytes.dropFirst(prefix.count)) ?? self
    }

    /// Why it is not the address of one host; `nil` when it is. Unspecified, multicast and the limited broadcast
    /// are not, and a link-local one of no particular link stands for as many as there are links.
    fileprivate var reasonAgainstHost: InvalidHost.Reason? {
        let isMulticast = family == .ipv4 ? bits >> 124 == 0xe : bits >> 120 == 0xff
        let isBroadcast = family == .ipv4 && bits >> 96 == 0xffff_ffff
        if bits == 0 || isMulticast || isBroadcast { return .notOneHost }
        return isLinkLocal && zone == 0 ? .noZone : nil
    }

    /// The address of a host as a resolver gave it; `nil` when it is not one host's, as the `0.0.0.0` of
    /// name servers that block.
    var ofHost: IPAddress? {
        let address = unmapped
        return address.reasonAgainstHost == nil ? address : nil
    }
}
