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

    package init(index: UInt32, name: String, flags: UInt32, operationalState: UInt8) {
        self.index = index
        self.name = name
        self.flags = flags
        self.operationalState = operationalState
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
    init(_ link: OpaquePointer) {
        self.init(
            index: UInt32(bitPattern: rtnl_link_get_ifindex(link)),
            name: rtnl_link_get_name(link).map { String(cString: $0) } ?? "",
            flags: rtnl_link_get_flags(link),
            operationalState: rtnl_link_get_operstate(link)
        )
    }
}
