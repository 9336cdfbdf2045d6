internal import NetwatchEventLoop

/// A host whose reachability can be watched: a host name or an address literal.
public struct NetworkHost: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case address(IPAddress)
        case name(String)
    }

    let kind: Kind

    /// The host as it was given.
    public let text: String

    /// A human-readable description of what ``init(_:)`` accepts.
    public static let acceptedForms =
        "a host name (`example.com`) or an address (`192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`), "
        + "without scheme, port, path or brackets"

    /// Creates a host from a name or an address literal.
    ///
    /// A name consists of labels of 1 to 63 letters, digits, hyphens or underscores, and has at most 253 bytes (RFC
    /// 1123 §2.1, RFC 1035 §2.3.4). A trailing dot is allowed. Internationalised names must be in `xn--` form. A name
    /// whose last label is a decimal or `0x` number is rejected, because it can only be a mistyped address.
    ///
    /// Everything else is rejected, including:
    /// - a URL, a port or an empty string;
    /// - an address that does not identify one host (multicast, `255.255.255.255`, `0.0.0.0`, `::`);
    /// - a link-local IPv6 address without a zone, because the zone selects the link (RFC 4007 §11). Zones are looked
    ///   up in the network namespace of the process.
    ///
    /// An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is treated as the IPv4 address.
    ///
    /// - Throws: ``InvalidHost`` with the reason.
    public init(validating text: String) throws(InvalidHost) {
        self.text = text
        if let address = IPAddress(text)?.unmapped {
            if let reason = address.hostRejection { throw InvalidHost(text, reason) }
            kind = .address(address)
        } else {
            kind = .name(try HostName.normalized(text))
        }
    }

    /// Creates a host from the text, or returns `nil` if ``init(validating:)`` would throw.
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
    /// Compares normalized names: `Example.com` and `example.com.` are the same host.
    public static func == (left: NetworkHost, right: NetworkHost) -> Bool {
        left.kind == right.kind
    }

    /// Hashes the normalized name.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
    }
}

extension IPAddress {
    /// The IPv4 address in an IPv4-mapped address (RFC 4291 §2.5.5.2), otherwise the address itself. Sockets connect
    /// to the IPv4 address.
    fileprivate var unmapped: IPAddress {
        let prefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]
        guard family == .ipv6, bytes.starts(with: prefix) else { return self }
        return IPAddress(bytes: bytes.dropFirst(prefix.count)) ?? self
    }

    /// Why the address does not identify one host; `nil` if it does. Unspecified, multicast and limited broadcast
    /// addresses do not. A link-local IPv6 address without a zone exists once per link.
    fileprivate var hostRejection: InvalidHost.Reason? {
        let isMulticast = family == .ipv4 ? bits >> 124 == 0xe : bits >> 120 == 0xff
        let isBroadcast = family == .ipv4 && bits >> 96 == 0xffff_ffff
        if bits == 0 || isMulticast || isBroadcast { return .notOneHost }
        return isLinkLocal && zone == 0 ? .noZone : nil
    }

    /// The address, unmapped, if a resolver's answer identifies one host, otherwise `nil`. Blocking name servers
    /// answer `0.0.0.0`, for example.
    var hostAddress: IPAddress? {
        let address = unmapped
        return address.hostRejection == nil ? address : nil
    }
}
