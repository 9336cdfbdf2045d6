internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

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

/// Calls libnl-route-3's parsers, except while the process exits.
///
/// Destructors of the library unregister its parsers. `exit(3)` runs them while other threads are still running. A
/// parser that then looks up its functions prints `BUG … Assertion` and aborts the process. In a program that exits
/// while links change, 3 of 200 runs ended so.
package enum LibraryParsers {
    private static let isExiting = Lock(false)

    /// Handlers of `atexit(3)` run before the destructors of shared libraries.
    private static let exitHandler: CInt = atexit { LibraryParsers.stop() }

    /// Waits until no parser runs, which takes microseconds, and prevents later calls. Stops waiting after a second,
    /// because in a child of `fork(2)` the thread that held the lock does not exist.
    private static func stop() {
        for _ in 0..<10_000 {
            if isExiting.withLockIfAvailable({ $0 = true }) != nil { return }
            usleep(100)
        }
    }

    /// Calls `body`, which may use the parsers. It must neither exit nor call code of the program.
    ///
    /// - Throws: A ``SystemError`` with `ECANCELED` if the process exits.
    package static func use<Result>(_ body: () -> Result) throws(SystemError) -> Result {
        _ = exitHandler
        return try isExiting.withLock { isExiting throws(SystemError) in
            if isExiting { throw SystemError(call: "libnl-route-3 during exit", errno: ECANCELED) }
            return body()
        }
    }
}
