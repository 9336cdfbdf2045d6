internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// What a notification of the kernel is about. Notifications are hints: they say what may have changed,
/// never what is true now.
package enum NetlinkEvent: Hashable, Sendable {
    /// The interface of this index.
    case link(UInt32)
    /// An address of an interface, with the network that comes with it.
    case address(interface: UInt32, IPPrefix)
    /// A route to these addresses, in whichever table.
    case route(IPPrefix)
    case rule
    case nextHop
    /// A setting of an interface, or of all (`netconf`).
    case setting
    /// Something that changes no path.
    case irrelevant
    /// Bytes that are no message, or a message too short for its type. Anything may have changed.
    case malformed
}

extension NetlinkEvent {
    /// Classes of notifications, each with multicast groups of its own.
    package enum Class: Hashable, Sendable, CaseIterable {
        case link, address, route, rule, nextHop, setting

        /// The groups that a path depends on.
        var groups: [rtnetlink_groups] {
            switch self {
            case .link: [RTNLGRP_LINK]
            case .address: [RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR]
            case .route: [RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE]
            case .rule: [RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE]
            case .nextHop: [RTNLGRP_NEXTHOP]
            // `ignore_routes_with_linkdown` changes what a lookup answers.
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

    /// Link messages of another family are about a role of the link, not the link: an interface that leaves
    /// a bridge is announced as an `AF_BRIDGE` deletion while it lives on.
    private static func link(_ message: NetlinkMessage) -> NetlinkEvent {
        guard let header = message.familyHeader(ifinfomsg.self) else { return .malformed }
        if CInt(header.ifi_family) != AF_UNSPEC { return .irrelevant }
        if header.ifi_change == 0, isWirelessReport(message) { return .irrelevant }
        return .link(UInt32(bitPattern: header.ifi_index))
    }

    /// A wireless scan reports each step as a link message that holds nothing about the link.
    private static func isWirelessReport(_ message: NetlinkMessage) -> Bool {
        let types = Set(message.attributes(after: ifinfomsg.self).map(\.type))
        return types.contains(CInt(IFLA_WIRELESS)) && !types.contains(CInt(IFLA_MTU))
    }

    private static func address(_ message: NetlinkMessage) -> NetlinkEvent {
        guard let header = message.familyHeader(ifaddrmsg.self) else { return .malformed }
        guard let family = IPAddress.Family(CInt(header.ifa_family)) else { return .irrelevant }
        // The network's; on a point-to-point link IFA_LOCAL is this side's address and not of it.
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
        return beginsIPv6(message, prefix).map { .link($0) } ?? .route(prefix)
    }

    /// With the route of its multicast addresses IPv6 begins on an interface. Nexthops over that which were dead are
    /// alive again then, and nothing else says so when it gets no address.
    private static func beginsIPv6(_ message: NetlinkMessage, _ prefix: IPPrefix) -> UInt32? {
        guard prefix == .ipv6Multicast else { return nil }
        return message.attributes(after: rtmsg.self).first { $0.type == CInt(RTA_OIF.rawValue) }?.number
    }
}

extension IPAddress.Family {
    /// `AF_INET` or `AF_INET6`; `nil` for other families.
    init?(_ family: CInt) {
        switch family {
        case AF_INET: self = .ipv4
        case AF_INET6: self = .ipv6
        default: return nil
        }
    }

    /// `AF_INET` or `AF_INET6`.
    var number: UInt8 {
        UInt8(self == .ipv4 ? AF_INET : AF_INET6)
    }
}

extension NetlinkMessage {
    /// The prefix whose address is in the attribute; `nil` when there is none, or of another family.
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
