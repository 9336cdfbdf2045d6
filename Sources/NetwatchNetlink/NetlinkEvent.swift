internal import CNetwatchNetlink
internal import Glibc

/// What a notification of the kernel is about. Notifications are hints: they say that something may have
/// changed, never what is true now.
package enum NetlinkEvent: Hashable, Sendable {
    case link
    case address
    case route
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
    init(_ message: NetlinkMessage) {
        switch CInt(message.type) {
        case CInt(RTM_NEWLINK), CInt(RTM_DELLINK):
            self = Self.link(message)
        case CInt(RTM_NEWADDR), CInt(RTM_DELADDR):
            self = Self.of(.address, message, ifaddrmsg.self)
        case CInt(RTM_NEWROUTE), CInt(RTM_DELROUTE):
            self = Self.of(.route, message, rtmsg.self)
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
        return .link
    }

    /// A wireless scan reports each step as a link message that holds nothing about the link.
    private static func isWirelessReport(_ message: NetlinkMessage) -> Bool {
        let types = Set(message.attributes(after: ifinfomsg.self).map(\.type))
        return types.contains(CInt(IFLA_WIRELESS)) && !types.contains(CInt(IFLA_MTU))
    }
}
