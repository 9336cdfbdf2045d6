internal import NetwatchEventLoop

/// A host whose reachability can be watched: a host name or an address literal.
///
/// ```swift
/// do {
///     let host = try NetworkHost(validating: "https://example.com")
///     print(host)
/// } catch {
///     print(error)  // `https://example.com` is not a valid host: it is a URL; give only the host
/// }
/// ```
public struct NetworkHost: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case address(IPAddress)
        case name(String)
    }

    let kind: Kind

    /// The text from which the host was created, not normalized.
    public let text: String

    /// A human-readable description of the text that is accepted as a host, for error messages and help texts.
    public static let acceptedForms =
        "a host name (`example.com`) or an address (`192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`), "
        + "without scheme, port, path or brackets"

    /// Creates a host from a name or an address literal.
    ///
    /// A name has at most 253 bytes and consists of labels, separated by dots (RFC 1123 §2.1, RFC 1035 §2.3.4). Each
    /// label has 1 to 63 letters, digits, hyphens or underscores, and neither begins nor ends with a hyphen. A
    /// trailing dot is allowed. Internationalised names must be in `xn--` form.
    ///
    /// An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is treated as the IPv4 address.
    ///
    /// Everything else is rejected, for example:
    /// - an empty string, a URL, a host with a port;
    /// - a name whose last label is a decimal or `0x` number, because it can only be a mistyped address;
    /// - an address that does not identify one host (multicast, `255.255.255.255`, `0.0.0.0`, `::`);
    /// - a link-local IPv6 address without a zone, because the zone selects the link (RFC 4007 §11);
    /// - an IPv6 address whose zone is not an interface in the network namespace of the process.
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

extension NetworkHost {
    /// The addresses that need no lookup: those of an address, of `localhost`, and of names below `localhost`; `nil` if
    /// the name must be looked up.
    var knownAddresses: [IPAddress]? {
        switch kind {
        case .address(let address): [address]
        case .name(let name): NameResolver.localAddresses(of: name)
        }
    }
}

extension NetworkHost: CustomStringConvertible {
    /// The text from which the host was created.
    public var description: String { text }
}

extension NetworkHost {
    /// Returns whether two hosts have the same address or the same normalized name. For example, `Example.com` equals
    /// `example.com.`.
    public static func == (left: NetworkHost, right: NetworkHost) -> Bool {
        left.kind == right.kind
    }

    /// Hashes the address or the normalized name.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
    }
}

extension IPAddress {
    /// The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), because sockets connect to the IPv4
    /// address. For any other address, the address itself.
    fileprivate var unmapped: IPAddress {
        let prefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]
        guard family == .ipv6, bytes.starts(with: prefix) else { return self }
        return IPAddress(bytes: bytes.dropFirst(prefix.count)) ?? self
    }

    /// The reason why the address does not identify one host; `nil` if it does.
    ///
    /// Unspecified, multicast and limited broadcast addresses identify no single host. A link-local IPv6 address
    /// without a zone may belong to a different host on each link.
    fileprivate var hostRejection: InvalidHost.Reason? {
        let isMulticast = family == .ipv4 ? bits >> 124 == 0xe : bits >> 120 == 0xff
        let isBroadcast = family == .ipv4 && bits >> 96 == 0xffff_ffff
        if bits == 0 || isMulticast || isBroadcast { return .notOneHost }
        return isLinkLocal && zone == 0 ? .noZone : nil
    }

    /// The address, converted to IPv4 if it is IPv4-mapped; `nil` if it does not identify one host.
    ///
    /// Used for the answers of name servers. For example, some answer `0.0.0.0` for a blocked name.
    var hostAddress: IPAddress? {
        let address = unmapped
        return address.hostRejection == nil ? address : nil
    }
}
