internal import CNetwatchNetlink
package import NetwatchEventLoop

/// The kernel's answer to the lookup of one address.
package enum RouteLookup: Hashable, Sendable {
    case route(Route)
    /// The kernel refused the lookup, with this error number and its error message (`NETLINK_EXT_ACK`) if there is one.
    ///
    /// `EINVAL` without a message means a blackhole route. `EINVAL` with a message means that the request was
    /// malformed.
    case refused(errno: CInt, message: String?)
}

/// The route in the answer to a lookup.
///
/// A plain lookup returns the next hop that the kernel would use and the source address that it would choose. A lookup
/// with `RTM_F_FIB_MATCH` returns the matching entry of the routing table instead, with its prefix and all its next
/// hops.
package struct Route: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A route to another host (`RTN_UNICAST`).
        case unicast
        /// A route to this machine itself (`RTN_LOCAL`).
        case local
        /// A route to several hosts, or to any of several (`RTN_BROADCAST`, `RTN_MULTICAST`, `RTN_ANYCAST`).
        case group
        case other(UInt8)

        init(_ type: UInt8) {
            switch Int(type) {
            case RTN_UNICAST: self = .unicast
            case RTN_LOCAL: self = .local
            case RTN_BROADCAST, RTN_MULTICAST, RTN_ANYCAST: self = .group
            default: self = .other(type)
            }
        }
    }

    package var kind = Kind.other(0)
    /// The prefix length of the table entry: 0 for a default route. Valid only after a lookup with `RTM_F_FIB_MATCH`; a
    /// plain lookup returns the length of the whole address.
    package var prefixLength = 0
    /// The routing table of the entry (`RTA_TABLE`); 254 is the main table. Valid only after a lookup with
    /// `RTM_F_FIB_MATCH`.
    package var table: UInt32 = 0
    /// The origin of the table entry, `RTPROT_…`.
    package var origin: UInt8 = 0
    /// The flags of the route: `RTNH_F_…` and `RTM_F_…`.
    package var flags: UInt32 = 0
    package var outputInterface: UInt32?
    package var gateway: IPAddress?
    /// The source address that the kernel would choose (`RTA_PREFSRC`).
    package var source: IPAddress?
    /// The remaining lifetime; `nil` if it is unlimited. Routes from IPv6 router advertisements expire. The kernel
    /// sends the notification of an expiry up to half a minute late.
    package var lifetime: Duration?
    /// The next hops of a multipath route. Empty if the route has a single next hop: it is then in `outputInterface`
    /// and `gateway`.
    package var nextHops: [NextHop] = []

    /// The ID of the next hop object that the route uses (`RTA_NH_ID`); `nil` if it uses none. By default, the kernel
    /// does not list the next hops of such an object (`nexthop_compat_mode` of ip-sysctl.rst).
    package var nextHopObject: UInt32?

    package struct NextHop: Hashable, Sendable {
        package let interface: UInt32
        /// The flags `RTNH_F_…`.
        package let flags: UInt8
    }

    /// Whether a router advertisement may change the lifetime of the route, which the kernel does not announce.
    ///
    /// Not only routes with a lifetime: the next advertisement may limit an unlimited one (RFC 4191).
    package var isRenewable: Bool {
        lifetime != nil || CInt(origin) == CInt(RTPROT_RA)
    }

    /// Whether the kernel has marked every next hop as dead or without carrier.
    package var isDown: Bool {
        let down = UInt32(RTNH_F_LINKDOWN | RTNH_F_DEAD)
        if nextHops.isEmpty { return flags & down != 0 }
        return nextHops.allSatisfy { UInt32($0.flags) & down != 0 }
    }
}

extension Route {
    /// Creates a route from an `RTM_NEWROUTE` message. Returns `nil` if the message is malformed.
    init?(_ message: NetlinkMessage) {
        guard let header = message.familyHeader(rtmsg.self) else { return nil }
        kind = Kind(header.rtm_type)
        flags = header.rtm_flags
        origin = header.rtm_protocol
        prefixLength = Int(header.rtm_dst_len)
        table = UInt32(header.rtm_table)
        var attributes = message.attributes(after: rtmsg.self)
        // The gateway is converted at the end: its zone is the interface, and the attributes may come in any order.
        var gateway: NetlinkAttribute?
        while let attribute = attributes.next() {
            switch attribute.type {
            case CInt(RTA_OIF.rawValue): outputInterface = attribute.number
            case CInt(RTA_TABLE.rawValue): table = attribute.number ?? table
            case CInt(RTA_GATEWAY.rawValue), CInt(RTA_VIA.rawValue): gateway = attribute.gateway
            case CInt(RTA_PREFSRC.rawValue): source = attribute.address()
            case CInt(RTA_NH_ID.rawValue): nextHopObject = attribute.number
            case CInt(RTA_CACHEINFO.rawValue): lifetime = Route.lifetime(attribute.bytes)
            case CInt(RTA_MULTIPATH.rawValue):
                nextHops = attribute.nextHops { hop, _ in
                    NextHop(interface: UInt32(bitPattern: hop.rtnh_ifindex), flags: hop.rtnh_flags)
                }
            default: break
            }
        }
        if attributes.isMalformed { return nil }
        self.gateway = gateway?.address(zone: outputInterface ?? 0)
    }

    /// Returns the remaining lifetime of a route (`rta_expires`), which the kernel counts in hundredths of a second
    /// (`USER_HZ`). The result is zero if the route has expired but was not removed yet; the kernel's number is then
    /// negative.
    private static func lifetime(_ bytes: UnsafeRawBufferPointer) -> Duration? {
        guard bytes.count >= MemoryLayout<rta_cacheinfo>.size else { return nil }
        let expires = Int64(bytes.loadUnaligned(as: rta_cacheinfo.self).rta_expires)
        return expires == 0 ? nil : .milliseconds(10 * max(0, expires))
    }
}

extension RouteLookup {
    /// Creates a refusal from an `NLMSG_ERROR` message. Returns `nil` if the message is malformed or an
    /// acknowledgement.
    init?(refusal message: NetlinkMessage) {
        guard let header = message.familyHeader(nlmsgerr.self), header.error != 0 else { return nil }
        self = .refused(errno: -header.error, message: Self.errorMessage(in: message, header))
    }

    /// Returns the kernel's error message; `nil` if there is none. In the message, it comes after a copy of the
    /// request, or of the request's header alone.
    private static func errorMessage(in message: NetlinkMessage, _ header: nlmsgerr) -> String? {
        guard message.flags & UInt16(NLM_F_ACK_TLVS) != 0 else { return nil }
        let isCapped = message.flags & UInt16(NLM_F_CAPPED) != 0
        let echoed = isCapped ? 0 : Int(header.msg.nlmsg_len) - MemoryLayout<nlmsghdr>.size
        let offset = MemoryLayout<nlmsgerr>.size + netlinkAligned(max(0, echoed))
        var attributes = NetlinkAttributes(
            UnsafeRawBufferPointer(rebasing: message.payload.dropFirst(offset))
        )
        while let attribute = attributes.next() {
            if attribute.type == CInt(NLMSGERR_ATTR_MSG.rawValue) { return attribute.text }
        }
        return nil
    }
}
