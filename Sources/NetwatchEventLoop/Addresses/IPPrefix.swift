/// The addresses that begin with the same bits: `192.0.2.0/24`.
package struct IPPrefix: Hashable, Sendable {
    package let family: IPAddress.Family
    /// The number of common bits, 0 to the family's ``IPAddress/Family/bitWidth``.
    package let length: Int
    /// ``IPAddress/bits`` of the first address.
    package let firstBits: UInt128

    /// Creates the prefix of the given length that contains an address. A length that is too large is reduced.
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

    /// Returns the prefix that covers all addresses.
    package static func everything(_ family: IPAddress.Family) -> IPPrefix {
        IPPrefix(family, bits: 0, length: 0)
    }

    /// ``IPAddress/bits`` of the last address.
    package var lastBits: UInt128 {
        firstBits | Self.hostMask(family, length)
    }

    package func contains(_ address: IPAddress) -> Bool {
        address.family == family && (firstBits...lastBits).contains(address.bits)
    }

    /// Returns a mask with the bits in which addresses of the prefix differ. For IPv4, the lower 96 bits are never
    /// set.
    private static func hostMask(_ family: IPAddress.Family, _ length: Int) -> UInt128 {
        let all = UInt128.max << (128 - family.bitWidth)
        return length == 0 ? all : all & (UInt128.max >> length)
    }
}

extension IPPrefix: CustomStringConvertible {
    /// `192.0.2.0/24`
    package var description: String {
        let bytes = (0..<family.bitWidth / 8).map { UInt8(truncatingIfNeeded: firstBits >> (120 - 8 * $0)) }
        return "\(IPAddress(bytes: bytes)!)/\(length)"
    }
}
