internal import CNetwatchNetlink
package import NetwatchEventLoop

/// An address that an interface has.
package struct InterfaceAddress: Hashable, Sendable {
    package let interface: UInt32
    package let address: IPAddress
    /// How many bits of the address name its network.
    package let prefixLength: UInt8
    /// `IFA_F_…` flags.
    package let flags: UInt32

    package init(interface: UInt32, address: IPAddress, prefixLength: UInt8 = 0, flags: UInt32) {
        self.interface = interface
        self.address = address
        self.prefixLength = prefixLength
        self.flags = flags
    }

    /// Whether the kernel will send from it: neither waiting for nor failed by duplicate address detection
    /// (RFC 4862 §5.4). An optimistic address (RFC 4429) may be used while it waits.
    package var isUsable: Bool {
        if flags & UInt32(IFA_F_DADFAILED) != 0 { return false }
        return flags & UInt32(IFA_F_TENTATIVE) == 0 || flags & UInt32(IFA_F_OPTIMISTIC) != 0
    }
}

extension InterfaceAddress {
    /// Reads an address that libnl parsed; `nil` unless it is IPv4 or IPv6.
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
