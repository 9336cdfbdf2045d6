internal import CNetwatchNetlink
package import NetwatchEventLoop

/// An address of an interface.
package struct InterfaceAddress: Hashable, Sendable {
    package let interface: UInt32
    package let address: IPAddress
    /// The length of the network prefix in bits.
    package let prefixLength: UInt8
    /// The flags of the address: `IFA_F_…` of <linux/if_addr.h>.
    package let flags: UInt32

    package init(interface: UInt32, address: IPAddress, prefixLength: UInt8 = 0, flags: UInt32) {
        self.interface = interface
        self.address = address
        self.prefixLength = prefixLength
        self.flags = flags
    }

    /// Whether the kernel can send from the address.
    ///
    /// An address is unusable while duplicate address detection (RFC 4862 §5.4) is pending, and after it has failed. An
    /// optimistic address (RFC 4429) is usable while the detection is pending.
    package var isUsable: Bool {
        if flags & UInt32(IFA_F_DADFAILED) != 0 { return false }
        return flags & UInt32(IFA_F_TENTATIVE) == 0 || flags & UInt32(IFA_F_OPTIMISTIC) != 0
    }
}

extension InterfaceAddress {
    /// Creates an address from the object that libnl has parsed. Returns `nil` if the address is neither IPv4 nor IPv6.
    init?(_ address: OpaquePointer) {
        guard let local = rtnl_addr_get_local(address) else { return nil }
        let bytes = UnsafeRawBufferPointer(
            start: nl_addr_get_binary_addr(local),
            count: Int(nl_addr_get_len(local))
        )
        let interface = UInt32(bitPattern: rtnl_addr_get_ifindex(address))
        guard let value = IPAddress(raw: bytes) else { return nil }
        self.init(
            interface: interface,
            address: value.inZone(value.isLinkLocal ? interface : 0),
            prefixLength: UInt8(clamping: rtnl_addr_get_prefixlen(address)),
            flags: rtnl_addr_get_flags(address)
        )
    }
}
