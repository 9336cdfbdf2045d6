internal import CNetwatchNetlink

/// A network interface as described by the kernel.
package struct Link: Hashable, Sendable {
    /// The interface index, which identifies the interface. Names can change.
    package let index: UInt32
    package let name: String
    /// The `IFF_…` flags of `netdevice(7)`, including those above 16 bits.
    package let flags: UInt32
    /// The operational state of RFC 2863, `IF_OPER_…`.
    package let operationalState: UInt8
    /// The kind of the link (`IFLA_INFO_KIND`): `bridge`, `veth`, `tun`, …; `nil` for hardware.
    package let kind: String?
    /// The hardware type, which determines the framing: `ARPHRD_…` (`ifi_type`). Wi-Fi and many modems report
    /// Ethernet.
    package let hardwareType: UInt16
    /// The bridge, bond or VRF that the link is a port of; `nil` if there is none.
    package let master: UInt32?
    /// The lower interface (`IFLA_LINK`, or VXLAN's own attribute), or the other end of a veth pair; `nil` if there
    /// is none.
    package let lowerLink: UInt32?
    /// Whether ``lowerLink`` is an index in another network namespace (`IFLA_LINK_NETNSID`). An interface with the
    /// same index in this namespace is then unrelated.
    package let lowerIsInOtherNamespace: Bool
    /// The maximum packet size in bytes (MTU).
    package let mtu: UInt32

    /// `ARPHRD_ETHER` of `<linux/if_arp.h>`.
    package static let ethernetFraming: UInt16 = 1

    package init(
        index: UInt32,
        name: String,
        flags: UInt32,
        operationalState: UInt8,
        kind: String? = nil,
        hardwareType: UInt16 = Self.ethernetFraming,
        master: UInt32? = nil,
        lowerLink: UInt32? = nil,
        lowerIsInOtherNamespace: Bool = false,
        mtu: UInt32 = 1500
    ) {
        self.index = index
        self.name = name
        self.flags = flags
        self.operationalState = operationalState
        self.kind = kind
        self.hardwareType = hardwareType
        self.master = master
        self.lowerLink = lowerLink
        self.lowerIsInOtherNamespace = lowerIsInOtherNamespace
        self.mtu = mtu
    }

    package var isLoopback: Bool {
        flags & UInt32(IFF_LOOPBACK.rawValue) != 0
    }

    package var isUp: Bool {
        flags & UInt32(IFF_UP.rawValue) != 0
    }

    /// Whether packets can leave, by the rule in the kernel's documentation of operational states.
    ///
    /// For drivers that never report a state (`UNKNOWN`: loopback, tunnels), the flags decide.
    package var hasCarrier: Bool {
        guard isUp else { return false }
        switch Int(operationalState) {
        case IF_OPER_UP: return true
        case IF_OPER_UNKNOWN: break
        default: return false
        }
        let running = UInt32(IFF_LOWER_UP.rawValue | IFF_RUNNING.rawValue)
        let dormant = UInt32(IFF_DORMANT.rawValue)
        return flags & running == running && flags & dormant == 0
    }
}

extension Link {
    /// Reads a link that libnl parsed.
    ///
    /// libnl keeps the kind as text, even if it cannot parse the attributes of that kind.
    init(_ link: OpaquePointer) {
        var otherNamespace: Int32 = 0
        self.init(
            index: UInt32(bitPattern: rtnl_link_get_ifindex(link)),
            name: rtnl_link_get_name(link).map { String(cString: $0) } ?? "",
            flags: rtnl_link_get_flags(link),
            operationalState: rtnl_link_get_operstate(link),
            kind: rtnl_link_get_type(link).map { String(cString: $0) },
            hardwareType: UInt16(truncatingIfNeeded: rtnl_link_get_arptype(link)),
            master: Self.index(rtnl_link_get_master(link)),
            lowerLink: Self.lowerLink(link),
            lowerIsInOtherNamespace: rtnl_link_get_link_netnsid(link, &otherNamespace) == 0,
            mtu: rtnl_link_get_mtu(link)
        )
    }

    /// Returns the lower interface. A VXLAN names it in its own attributes, never in `IFLA_LINK`.
    private static func lowerLink(_ link: OpaquePointer) -> UInt32? {
        var underlay: UInt32 = 0
        if rtnl_link_is_vxlan(link) != 0, rtnl_link_vxlan_get_link(link, &underlay) == 0 {
            return underlay == 0 ? nil : underlay
        }
        return index(rtnl_link_get_link(link))
    }

    /// Converts an attribute with an interface index, where 0 means none.
    private static func index(_ value: CInt) -> UInt32? {
        value == 0 ? nil : UInt32(bitPattern: value)
    }
}
