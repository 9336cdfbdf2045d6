internal import CNetwatchNetlink

/// A network interface as described by the kernel.
package struct Link: Hashable, Sendable {
    /// The interface index. It identifies the interface, because names can change.
    package let index: UInt32
    package let name: String
    /// The `IFF_…` flags of `netdevice(7)`, including those above bit 15, which do not fit into its `ifr_flags`.
    package let flags: UInt32
    /// The operational state (RFC 2863), `IF_OPER_…`.
    package let operationalState: UInt8
    /// The kind of a virtual link (`IFLA_INFO_KIND`), such as `bridge`, `veth` or `tun`; `nil` for hardware.
    package let kind: String?
    /// The hardware type (`ifi_type`), `ARPHRD_…`, which determines the framing. Wi-Fi and many modems report Ethernet.
    package let hardwareType: UInt16
    /// The index of the bridge, bond or VRF that this link belongs to as a port; `nil` if there is none.
    package let master: UInt32?
    /// The index of the interface that carries this link's packets, or of the other end of a veth pair; `nil` if there
    /// is none. The kernel reports it in `IFLA_LINK`, and for VXLAN in a separate attribute.
    package let lowerLink: UInt32?
    /// Whether ``lowerLink`` is an index in another network namespace (`IFLA_LINK_NETNSID`). The interface with the
    /// same index in this namespace is not the lower link.
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

    /// Whether the link can send packets, by the rule in the kernel's documentation of operational states.
    ///
    /// Some drivers never report a state (`UNKNOWN`), for example the drivers of loopback and tunnels. For them, the
    /// flags decide.
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
    /// Creates a link from the object that libnl has parsed.
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

    /// Returns the index of the lower interface. A VXLAN reports it in its own attributes, never in `IFLA_LINK`.
    private static func lowerLink(_ link: OpaquePointer) -> UInt32? {
        var underlay: UInt32 = 0
        if rtnl_link_is_vxlan(link) != 0, rtnl_link_vxlan_get_link(link, &underlay) == 0 {
            return underlay == 0 ? nil : underlay
        }
        return index(rtnl_link_get_link(link))
    }

    /// Returns the interface index in an attribute; `nil` for 0, which means none.
    private static func index(_ value: CInt) -> UInt32? {
        value == 0 ? nil : UInt32(bitPattern: value)
    }
}
