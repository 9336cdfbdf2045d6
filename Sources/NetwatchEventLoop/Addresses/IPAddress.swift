internal import Glibc

/// An IPv4 or IPv6 address. An IPv6 address includes its zone.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// A family of IP addresses.
    public enum Family: Hashable, Sendable, CaseIterable {
        /// IPv4 (RFC 791), with addresses of 32 bits.
        case ipv4
        /// IPv6 (RFC 8200), with addresses of 128 bits.
        case ipv6
    }

    /// The address family.
    public let family: Family

    /// The interface index of the zone (`fe80::1%eth0`, RFC 4007 §11); 0 if the address has none.
    public let zone: UInt32

    // Two words instead of an array or `UInt128`, because a program may watch many hosts with many addresses.
    private let high: UInt64
    private let low: UInt64

    private init(family: Family, bits: UInt128, zone: UInt32) {
        self.family = family
        self.zone = zone
        high = UInt64(truncatingIfNeeded: bits >> 64)
        low = UInt64(truncatingIfNeeded: bits)
    }

    /// Creates an address from 4 or 16 bytes in network byte order. Returns `nil` for any other number of bytes.
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

    /// Creates an address from 4 or 16 bytes in network byte order. Returns `nil` for any other number of bytes.
    ///
    /// Unlike ``init(bytes:zone:)`` this initializer is not generic, because a generic one would be slow when called
    /// from another module, which cannot specialize it. NetwatchNetlink calls it for up to ten thousand replies at a
    /// time.
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

    /// Parses a numeric address: IPv4 as four decimal numbers, or IPv6 as in RFC 4291 with an optional zone.
    ///
    /// A zone is the name of an existing interface, or an interface index. Returns `nil` for everything else, including
    /// the short forms of `inet_aton(3)` such as `127.1`.
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

    /// The address in numeric form (`inet_ntop(3)`). A zone is written as an index: `fe80::1%2`.
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

    /// The address as a number. The first bit of the address is the most significant bit of the number in both
    /// families, so that arithmetic with prefixes is the same for both.
    package var bits: UInt128 {
        UInt128(high) << 64 | UInt128(low)
    }

    /// Whether the address is valid on one link only: `fe80::/10` (RFC 4291 §2.5.6).
    public var isLinkLocal: Bool {
        family == .ipv6 && high >> 54 == 0xfe80 >> 6
    }

    /// Whether the address is an IPv4 address that is valid on one link only: `169.254.0.0/16` (RFC 3927).
    package var isIPv4LinkLocal: Bool {
        family == .ipv4 && high >> 48 == 0xa9fe
    }

    /// Whether the address is a loopback address: `127.0.0.0/8` (RFC 1122 §3.2.1.3) or `::1`.
    package var isLoopback: Bool {
        family == .ipv4 ? high >> 56 == 127 : high == 0 && low == 1
    }

    /// Returns the same address with another zone.
    package func inZone(_ zone: UInt32) -> IPAddress {
        IPAddress(family: family, bits: bits, zone: zone)
    }
}

extension IPAddress.Family {
    /// The number of bits in an address.
    package var bitWidth: Int {
        self == .ipv4 ? 32 : 128
    }
}

// MARK: - Text

extension IPAddress {
    private static func parse(_ text: String, family: CInt, count: Int) -> [UInt8]? {
        // A C function would ignore everything after a zero byte.
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

/// An address prefix: all addresses that begin with the same bits, such as `192.0.2.0/24`.
package struct IPPrefix: Hashable, Sendable {
    package let family: IPAddress.Family
    /// The number of common bits, from 0 to ``IPAddress/Family/bitWidth``.
    package let length: Int
    /// The ``IPAddress/bits`` of the first address.
    package let firstBits: UInt128

    /// Creates the prefix of the given length that contains an address. A length outside the family's range is clamped.
    package init(_ address: IPAddress, length: Int) {
        self.init(address.family, bits: address.bits, length: length)
    }

    package init(_ family: IPAddress.Family, bits: UInt128, length: Int) {
        self.family = family
        self.length = min(max(length, 0), family.bitWidth)
        firstBits = bits & ~Self.hostMask(family, self.length)
    }

    /// All IPv6 multicast addresses (RFC 4291 §2.7).
    package static let ipv6Multicast = IPPrefix(.ipv6, bits: 0xff << 120, length: 8)

    /// Returns the prefix that contains all addresses of a family.
    package static func everything(_ family: IPAddress.Family) -> IPPrefix {
        IPPrefix(family, bits: 0, length: 0)
    }

    /// The ``IPAddress/bits`` of the last address.
    package var lastBits: UInt128 {
        firstBits | Self.hostMask(family, length)
    }

    package func contains(_ address: IPAddress) -> Bool {
        address.family == family && (firstBits...lastBits).contains(address.bits)
    }

    /// Returns a mask of the bits in which the addresses of a prefix differ. For IPv4 the lower 96 bits are always 0,
    /// because ``IPAddress/bits`` does not use them.
    private static func hostMask(_ family: IPAddress.Family, _ length: Int) -> UInt128 {
        let all = UInt128.max << (128 - family.bitWidth)
        return length == 0 ? all : all & (UInt128.max >> length)
    }
}

extension IPPrefix: CustomStringConvertible {
    /// The first address and the length: `192.0.2.0/24`.
    package var description: String {
        let bytes = (0..<family.bitWidth / 8).map { UInt8(truncatingIfNeeded: firstBits >> (120 - 8 * $0)) }
        return "\(IPAddress(bytes: bytes)!)/\(length)"
    }
}

/// The limits of the names of network interfaces.
package enum InterfaceName {
    /// The maximum length in bytes: 15, which is `IF_NAMESIZE` (`net/if.h`) without the final NUL.
    package static let maximumBytes = Int(IF_NAMESIZE) - 1
}
