internal import Glibc

/// An IPv4 or IPv6 address, the latter with the interface it is scoped to.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address family.
    public enum Family: Hashable, Sendable, CaseIterable {
        /// RFC 791: 32 bits.
        case ipv4
        /// RFC 8200: 128 bits.
        case ipv6
    }

    /// The address family.
    public let family: Family

    /// The interface index of a zone (`fe80::1%eth0`, RFC 4007 §11); 0 when the address has none.
    public let zone: UInt32

    // Two words rather than an array or `UInt128`: whoever watches many hosts holds many addresses.
    private let high: UInt64
    private let low: UInt64

    private init(family: Family, bits: UInt128, zone: UInt32) {
        self.family = family
        self.zone = zone
        high = UInt64(truncatingIfNeeded: bits >> 64)
        low = UInt64(truncatingIfNeeded: bits)
    }

    /// Makes an address of its bytes in network order, or returns `nil` unless there are 4 or 16.
    public init?(bytes: some Collection<UInt8>, zone: UInt32 = 0) {
        let family: Family
        switch bytes.count {
        case 4: family = .ipv4
        case 16: family = .ipv6
        default: return nil
        }
        let value = bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        self.init(family: family, bits: value << (128 - family.bitWidth), zone: zone)
    }

    /// Makes an address of its bytes in network order, or returns `nil` unless there are 4 or 16.
    ///
    /// Not generic: the kernel's answers are read through it, ten thousand at a time, and a generic
    /// initializer is not specialized in another module.
    package init?(raw bytes: UnsafeRawBufferPointer, zone: UInt32 = 0) {
        switch bytes.count {
        case 4:
            family = .ipv4
            high = UInt64(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))) << 32
            low = 0
        case 16:
            family = .ipv6
            high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
            low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        default: return nil
        }
        self.zone = zone
    }

    /// Parses the numeric form of one address: dotted quad or RFC 4291 text, with a zone for IPv6.
    ///
    /// Returns `nil` for everything else, the short forms of `inet_aton(3)` such as `127.1` included. A
    /// zone is an interface name, which has to exist, or an index.
    public init?(_ text: String) {
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 1, let bytes = Self.parse(text, family: AF_INET, count: 4) {
            self.init(bytes: bytes)
            return
        }
        guard let bytes = Self.parse(String(parts[0]), family: AF_INET6, count: 16) else { return nil }
        guard parts.count == 2 else {
            self.init(bytes: bytes)
            return
        }
        guard let zone = Self.zoneIndex(String(parts[1])) else { return nil }
        self.init(bytes: bytes, zone: zone)
    }

    /// The numeric form (`inet_ntop(3)`), with the zone as an index: `fe80::1%2`.
    public var description: String {
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            let family = family == .ipv4 ? AF_INET : AF_INET6
            inet_ntop(family, bytes, buffer.baseAddress, socklen_t(buffer.count))
            return String(cString: buffer.baseAddress!)
        }
        return zone == 0 ? text : "\(text)%\(zone)"
    }

    /// The address in network byte order: 4 bytes for IPv4, 16 for IPv6.
    public var bytes: [UInt8] {
        (0..<family.bitWidth / 8).map { UInt8(truncatingIfNeeded: bits >> (120 - 8 * $0)) }
    }

    /// The address as a number whose highest bit is its first, so that one arithmetic of prefixes serves
    /// both families.
    package var bits: UInt128 {
        UInt128(high) << 64 | UInt128(low)
    }

    /// Whether the address is only valid on one link: `fe80::/10` (RFC 4291 §2.5.6).
    public var isLinkLocal: Bool {
        family == .ipv6 && high >> 54 == 0xfe80 >> 6
    }

    /// Whether the address is the machine's own wherever it is: `127.0.0.0/8` (RFC 1122 §3.2.1.3), `::1`.
    package var isLoopback: Bool {
        family == .ipv4 ? high >> 56 == 127 : high == 0 && low == 1
    }

    /// The same address with another zone.
    package func inZone(_ zone: UInt32) -> IPAddress {
        IPAddress(family: family, bits: bits, zone: zone)
    }
}

extension IPAddress.Family {
    /// How many bits an address has.
    package var bitWidth: Int {
        self == .ipv4 ? 32 : 128
    }
}

// MARK: - Text

extension IPAddress {
    private static func parse(_ text: String, family: CInt, count: Int) -> [UInt8]? {
        // C would end the text there.
        if text.utf8.contains(0) { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        return inet_pton(family, text, &bytes) == 1 ? bytes : nil
    }

    private static func zoneIndex(_ text: String) -> UInt32? {
        if let index = UInt32(text), index > 0 { return index }
        if text.utf8.contains(0) { return nil }
        let index = if_nametoindex(text)
        return index > 0 ? index : nil
    }
}
