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
