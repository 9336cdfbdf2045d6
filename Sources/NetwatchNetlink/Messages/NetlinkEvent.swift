internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// The subject of a kernel notification. A notification is only a hint: it says what may have changed, not what the
/// current state is.
package enum NetlinkEvent: Hashable, Sendable {
    /// The interface with this index.
    case link(UInt32)
    /// An address of an interface. The prefix is the network of the address.
    case address(interface: UInt32, IPPrefix)
    /// A route to the addresses of this prefix, in any table.
    case route(IPPrefix)
    case rule
    case nextHop
    /// A network setting of one interface or of all (`RTM_NEWNETCONF`).
    case setting
    /// A change that affects no path.
    case irrelevant
    /// Bytes that are not a message, or a message that is too short for its type. They may hide any change.
    case malformed
}

extension NetlinkEvent {
    /// The classes of notifications. Each has its own multicast groups.
    package enum Class: Hashable, Sendable, CaseIterable {
        case link, address, route, rule, nextHop, setting

        /// The multicast groups of the class that affect paths.
        var groups: [rtnetlink_groups] {
            switch self {
            case .link: [RTNLGRP_LINK]
            case .address: [RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR]
            // A router advertisement may limit the lifetime of an on-link route. The only notification is then that of
            // the prefix in the advertisement.
            case .route: [RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_PREFIX]
            case .rule: [RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE]
            case .nextHop: [RTNLGRP_NEXTHOP]
            // The setting `ignore_routes_with_linkdown` changes the results of lookups.
            case .setting: [RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF]
            }
        }
    }

    init(_ message: NetlinkMessage) {
        switch CInt(message.type) {
        case CInt(RTM_NEWLINK), CInt(RTM_DELLINK):
            self = Self.link(message)
        case CInt(RTM_NEWADDR), CInt(RTM_DELADDR):
            self = Self.address(message)
        case CInt(RTM_NEWROUTE), CInt(RTM_DELROUTE):
            self = Self.route(message)
        case CInt(RTM_NEWPREFIX):
            self = Self.advertisedPrefix(message)
        case CInt(RTM_NEWRULE), CInt(RTM_DELRULE):
            self = Self.of(.rule, message, rtmsg.self)
        case CInt(RTM_NEWNEXTHOP), CInt(RTM_DELNEXTHOP):
            self = Self.of(.nextHop, message, nhmsg.self)
        case CInt(RTM_NEWNETCONF), CInt(RTM_DELNETCONF):
            self = Self.of(.setting, message, netconfmsg.self)
        case NLMSG_ERROR, NLMSG_OVERRUN:
            self = .malformed
        default:
            self = .irrelevant
        }
    }

    private static func of<Header: BitwiseCopyable>(
        _ event: NetlinkEvent,
        _ message: NetlinkMessage,
        _ header: Header.Type
    ) -> NetlinkEvent {
        message.familyHeader(header) == nil ? .malformed : event
    }

    /// Returns the event of a link message. Messages with an address family describe a role of the link, not the link
    /// itself. For example, when an interface leaves a bridge, the kernel sends a deletion with `AF_BRIDGE`, although
    /// the interface still exists.
    private static func link(_ message: NetlinkMessage) -> NetlinkEvent {
        guard let header = message.familyHeader(ifinfomsg.self) else { return .malformed }
        if CInt(header.ifi_family) != AF_UNSPEC { return .irrelevant }
        if header.ifi_change == 0, isWirelessReport(message) { return .irrelevant }
        return .link(UInt32(bitPattern: header.ifi_index))
    }

    /// Returns whether a link message is only a report of a wireless scan. A scan reports each step in a link message
    /// that has no properties of the link.
    private static func isWirelessReport(_ message: NetlinkMessage) -> Bool {
        var isWireless = false
        for attribute in message.attributes(after: ifinfomsg.self) {
            if attribute.type == CInt(IFLA_MTU) { return false }
            if attribute.type == CInt(IFLA_WIRELESS) { isWireless = true }
        }
        return isWireless
    }

    private static func address(_ message: NetlinkMessage) -> NetlinkEvent {
        guard let header = message.familyHeader(ifaddrmsg.self) else { return .malformed }
        guard let family = IPAddress.Family(CInt(header.ifa_family)) else { return .irrelevant }
        // IFA_ADDRESS is always an address in the network. IFA_LOCAL may be outside it: on a point-to-point link, it is
        // this machine's own address.
        let prefix = message.prefix(
            of: CInt(IFA_ADDRESS),
            after: ifaddrmsg.self,
            family,
            length: Int(header.ifa_prefixlen)
        )
        return prefix.map { .address(interface: header.ifa_index, $0) } ?? .malformed
    }

    private static func route(_ message: NetlinkMessage) -> NetlinkEvent {
        guard let header = message.familyHeader(rtmsg.self) else { return .malformed }
        guard let family = IPAddress.Family(CInt(header.rtm_family)) else { return .irrelevant }
        if header.rtm_dst_len == 0 { return .route(.everything(family)) }
        let prefix = message.prefix(
            of: CInt(RTA_DST.rawValue),
            after: rtmsg.self,
            family,
            length: Int(header.rtm_dst_len)
        )
        guard let prefix else { return .malformed }
        return interfaceStartingIPv6(message, prefix).map { .link($0) } ?? .route(prefix)
    }

    private static func advertisedPrefix(_ message: NetlinkMessage) -> NetlinkEvent {
        guard let header = message.familyHeader(prefixmsg.self) else { return .malformed }
        let length = Int(header.prefix_len)
        let prefix = message.prefix(of: CInt(PREFIX_ADDRESS), after: prefixmsg.self, .ipv6, length: length)
        return prefix.map { .route($0) } ?? .malformed
    }

    /// Returns the interface on which IPv6 has just started; `nil` if the route does not show that. When IPv6 starts on
    /// an interface, the kernel adds the route `ff00::/8` to it.
    ///
    /// At that moment, dead next hops on the interface become usable again. If the interface gets no address, no other
    /// notification reports this.
    private static func interfaceStartingIPv6(_ message: NetlinkMessage, _ prefix: IPPrefix) -> UInt32? {
        guard prefix == .ipv6Multicast else { return nil }
        return message.attributes(after: rtmsg.self).first { $0.type == CInt(RTA_OIF.rawValue) }?.number
    }
}

extension IPAddress.Family {
    /// Creates a family from `AF_INET` or `AF_INET6`. Returns `nil` for other families.
    init?(_ family: CInt) {
        switch family {
        case AF_INET: self = .ipv4
        case AF_INET6: self = .ipv6
        default: return nil
        }
    }

    /// The number of the family: `AF_INET` or `AF_INET6`.
    var number: UInt8 {
        UInt8(self == .ipv4 ? AF_INET : AF_INET6)
    }
}

extension NetlinkMessage {
    /// Returns the prefix whose address is in the attribute of this type. Returns `nil` if the attribute is missing or
    /// its address has another family.
    fileprivate func prefix<Header: BitwiseCopyable>(
        of type: CInt,
        after header: Header.Type,
        _ family: IPAddress.Family,
        length: Int
    ) -> IPPrefix? {
        var attributes = attributes(after: header)
        while let attribute = attributes.next() {
            guard attribute.type == type, let address = IPAddress(raw: attribute.bytes) else { continue }
            return address.family == family ? IPPrefix(address, length: length) : nil
        }
        return nil
    }
}
