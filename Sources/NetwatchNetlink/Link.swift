internal import CNetwatchNetlink

/// A network interface as the kernel describes it.
package struct Link: Hashable, Sendable {
    /// The interface index, its only identity: names change.
    package let index: UInt32
    package let name: String
    /// `IFF_…` flags of `netdevice(7)`, with those above 16 bits.
    package let flags: UInt32
    /// RFC 2863 operational state, `IF_OPER_…`.
    package let operationalState: UInt8
    /// What made it, `IFLA_INFO_KIND`: `bridge`, `veth`, `tun`, …; `nil` for what hardware drivers make.
    package let kind: String?
    /// The framing it speaks, `ARPHRD_…` (`ifi_type`). Wi-Fi and many modems claim Ethernet's.
    package let hardwareType: UInt16
    /// The bridge, bond or VRF it is a port of; `nil` when it is none.
    package let master: UInt32?
    /// The interface it is stacked on (`IFLA_LINK`, and a VXLAN's own attribute for it), or the other end of
    /// a veth pair; `nil` when it stands alone.
    package let lowerLink: UInt32?
    /// Whether ``lowerLink`` is an index of another network namespace (`IFLA_LINK_NETNSID`), so that an
    /// interface of the same index here has nothing to do with it.
    package let lowerIsElsewhere: Bool
    /// The largest packet it takes, in bytes.
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
        lowerIsElsewhere: Bool = false,
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
        self.lowerIsElsewhere = lowerIsElsewhere
        self.mtu = mtu
    }

    package var isLoopback: Bool {
        flags & UInt32(IFF_LOOPBACK.rawValue) != 0
    }

    package var isUp: Bool {
        flags & UInt32(IFF_UP.rawValue) != 0
    }

    /// Whether packets can leave: the rule of the kernel's operational-state document.
    ///
    /// A driver that never reports a state (`UNKNOWN`: loopback, tunnels) is judged by its flags.
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
    /// libnl keeps the kind as text whether or not it knows how to parse the rest of it.
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
            lowerIsElsewhere: rtnl_link_get_link_netnsid(link, &otherNamespace) == 0,
            mtu: rtnl_link_get_mtu(link)
        )
    }

    /// A VXLAN sends over the interface it names among its own attributes, never in `IFLA_LINK`.
    private static func lowerLink(_ link: OpaquePointer) -> UInt32? {
        var underlay: UInt32 = 0
        if rtnl_link_is_vxlan(link) != 0, rtnl_link_vxlan_get_link(link, &underlay) == 0 {
            return underlay == 0 ? nil : underlay
        }
        return index(rtnl_link_get_link(link))
    }

    /// An attribute that holds an interface index, where 0 means none.
    private static func index(_ value: CInt) -> UInt32? {
        value == 0 ? nil : UInt32(bitPattern: value)
    }
}
