internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// A kernel notification in detail, for display only. The path monitor does not use these details: it uses the
/// ``NetlinkEvent`` of a notification, and then looks up the current state.
///
/// Numbers have the values of the kernel's headers. A property is `nil` if the message does not contain it.
package struct NetlinkNotification: Hashable, Sendable {
    /// The subject of the notification.
    package enum Kind: String, Hashable, Sendable {
        case link, address, route, rule, nextHop, setting
        /// An on-link prefix in a router advertisement.
        case prefix
        /// A message of another type.
        case other
        /// Bytes that are not a message, or a message that is too short for its type.
        case malformed
    }

    /// The kind of change of the subject.
    package enum Change: String, Hashable, Sendable {
        case new, deleted
    }

    /// The address prefix of a route, a rule or an interface.
    package struct Prefix: Hashable, Sendable, CustomStringConvertible {
        package let address: IPAddress
        package let length: UInt8

        package var description: String { "\(address)/\(length)" }
    }

    /// One next hop of a multipath route.
    package struct NextHop: Hashable, Sendable {
        package let interface: UInt32
        package let gateway: IPAddress?
    }

    package var kind: Kind
    /// The kind of change; `nil` for ``Kind/other`` and ``Kind/malformed``.
    package var change: Change?
    /// The message type, `RTM_…`; 0 if the bytes are not a message.
    package var messageType: UInt16 = 0
    /// The address family, `AF_…`.
    package var family: UInt8?
    /// The interface index.
    package var interface: UInt32?
    package var interfaceName: String?
    /// The flags: `IFF_…` of a link, `IFA_F_…` of an address, `RTNH_F_…` and `RTM_F_…` of a route, or `FIB_RULE_…` of a
    /// rule.
    package var flags: UInt32?
    /// The operational state of a link, `IF_OPER_…`.
    package var operationalState: UInt8?
    /// The address of an interface with its prefix length, or the destinations of a route or rule; `nil` for all
    /// destinations.
    package var prefix: Prefix?
    /// The source addresses to which a route or rule applies.
    package var from: Prefix?
    package var gateway: IPAddress?
    /// The preferred source address of a route.
    package var source: IPAddress?
    /// The type of a route, `RTN_…`, or the action of a rule, `FR_ACT_…`.
    package var action: UInt8?
    package var table: UInt32?
    /// The origin of the route, `RTPROT_…`.
    package var origin: UInt8?
    /// The metric of a route, or the priority of a rule.
    package var priority: UInt32?
    package var mark: UInt32?
    /// The ID of a next hop object: the object that the route uses, or the object that is the subject of the message.
    package var nextHopID: UInt32?
    package var nextHops: [NextHop] = []

    /// Returns all notifications in a datagram. Bytes that cannot be parsed become a notification with
    /// ``Kind/malformed``.
    package static func all(in datagram: [UInt8]) -> [NetlinkNotification] {
        var bytes = datagram
        return bytes.withUnsafeMutableBytes { buffer in
            var messages = NetlinkMessages(buffer)
            var notifications: [NetlinkNotification] = []
            while let message = messages.next() { notifications.append(NetlinkNotification(message)) }
            if messages.isMalformed { notifications.append(NetlinkNotification(kind: .malformed)) }
            return notifications
        }
    }
}

// MARK: - Reading

extension NetlinkNotification {
    init(kind: Kind) {
        self.kind = kind
    }

    init(_ message: NetlinkMessage) {
        self = Self.read(message) ?? NetlinkNotification(kind: .malformed)
        messageType = message.type
    }

    private static func read(_ message: NetlinkMessage) -> NetlinkNotification? {
        switch CInt(message.type) {
        case CInt(RTM_NEWLINK): link(message, .new)
        case CInt(RTM_DELLINK): link(message, .deleted)
        case CInt(RTM_NEWADDR): address(message, .new)
        case CInt(RTM_DELADDR): address(message, .deleted)
        case CInt(RTM_NEWROUTE): route(message, .new)
        case CInt(RTM_DELROUTE): route(message, .deleted)
        case CInt(RTM_NEWPREFIX): advertisedPrefix(message)
        case CInt(RTM_NEWRULE): rule(message, .new)
        case CInt(RTM_DELRULE): rule(message, .deleted)
        case CInt(RTM_NEWNEXTHOP): nextHop(message, .new)
        case CInt(RTM_DELNEXTHOP): nextHop(message, .deleted)
        case CInt(RTM_NEWNETCONF): setting(message, .new)
        case CInt(RTM_DELNETCONF): setting(message, .deleted)
        default: NetlinkNotification(kind: .other)
        }
    }

    private init(_ kind: Kind, _ change: Change, family: UInt8) {
        self.init(kind: kind)
        self.change = change
        self.family = family
    }

    /// Passes each attribute to `take`, and returns the resulting notification. Returns `nil` if some of the bytes are
    /// not an attribute.
    private mutating func read<Header: BitwiseCopyable>(
        _ message: NetlinkMessage,
        after header: Header.Type,
        _ take: (inout NetlinkNotification, NetlinkAttribute) -> Void
    ) -> NetlinkNotification? {
        var attributes = message.attributes(after: header)
        while let attribute = attributes.next() { take(&self, attribute) }
        return attributes.isMalformed ? nil : self
    }

    private static func link(_ message: NetlinkMessage, _ change: Change) -> NetlinkNotification? {
        guard let header = message.familyHeader(ifinfomsg.self) else { return nil }
        var link = NetlinkNotification(.link, change, family: header.ifi_family)
        link.interface = UInt32(bitPattern: header.ifi_index)
        link.flags = header.ifi_flags
        return link.read(message, after: ifinfomsg.self) { link, attribute in
            switch Int(attribute.type) {
            case IFLA_IFNAME: link.interfaceName = attribute.text
            case IFLA_OPERSTATE: link.operationalState = attribute.bytes.first
            default: break
            }
        }
    }

    private static func address(_ message: NetlinkMessage, _ change: Change) -> NetlinkNotification? {
        guard let header = message.familyHeader(ifaddrmsg.self) else { return nil }
        var notification = NetlinkNotification(.address, change, family: header.ifa_family)
        notification.interface = header.ifa_index
        notification.flags = UInt32(header.ifa_flags)
        // On point-to-point links, IFA_LOCAL is the address of the interface, and IFA_ADDRESS is the remote end.
        var hasLocal = false
        return notification.read(message, after: ifaddrmsg.self) { notification, attribute in
            switch Int(attribute.type) {
            case IFA_LOCAL:
                hasLocal = true
                notification.prefix = attribute.prefix(header.ifa_prefixlen)
            case IFA_ADDRESS where !hasLocal: notification.prefix = attribute.prefix(header.ifa_prefixlen)
            // The header contains only 8 of the flags.
            case IFA_FLAGS: notification.flags = attribute.number ?? notification.flags
            default: break
            }
        }
    }

    private static func advertisedPrefix(_ message: NetlinkMessage) -> NetlinkNotification? {
        guard let header = message.familyHeader(prefixmsg.self) else { return nil }
        var notification = NetlinkNotification(.prefix, .new, family: header.prefix_family)
        notification.interface = UInt32(bitPattern: header.prefix_ifindex)
        notification.flags = UInt32(header.prefix_flags)
        return notification.read(message, after: prefixmsg.self) { notification, attribute in
            if Int(attribute.type) == PREFIX_ADDRESS {
                notification.prefix = attribute.prefix(header.prefix_len)
            }
        }
    }

    private static func route(_ message: NetlinkMessage, _ change: Change) -> NetlinkNotification? {
        guard let header = message.familyHeader(rtmsg.self) else { return nil }
        var route = NetlinkNotification(.route, change, family: header.rtm_family)
        route.flags = header.rtm_flags
        route.action = header.rtm_type
        route.origin = header.rtm_protocol
        route.table = UInt32(header.rtm_table)
        return route.read(message, after: rtmsg.self) { $0.takeRoute($1, header) }
    }

    private mutating func takeRoute(_ attribute: NetlinkAttribute, _ header: rtmsg) {
        switch attribute.type {
        case CInt(RTA_DST.rawValue): prefix = attribute.prefix(header.rtm_dst_len)
        case CInt(RTA_SRC.rawValue): from = attribute.prefix(header.rtm_src_len)
        case CInt(RTA_OIF.rawValue): interface = attribute.number
        case CInt(RTA_GATEWAY.rawValue), CInt(RTA_VIA.rawValue): gateway = attribute.gateway?.address()
        case CInt(RTA_PREFSRC.rawValue): source = attribute.address()
        case CInt(RTA_PRIORITY.rawValue): priority = attribute.number
        // The header has only one byte for the ID of the table.
        case CInt(RTA_TABLE.rawValue): table = attribute.number ?? table
        case CInt(RTA_NH_ID.rawValue): nextHopID = attribute.number
        case CInt(RTA_MULTIPATH.rawValue):
            nextHops = attribute.nextHops { hop, attributes in
                NextHop(
                    interface: UInt32(bitPattern: hop.rtnh_ifindex),
                    gateway: attributes.lazy.compactMap { $0.gateway?.address() }.first
                )
            }
        default: break
        }
    }

    private static func rule(_ message: NetlinkMessage, _ change: Change) -> NetlinkNotification? {
        guard let header = message.familyHeader(fib_rule_hdr.self) else { return nil }
        var rule = NetlinkNotification(.rule, change, family: header.family)
        rule.flags = header.flags
        rule.action = header.action
        rule.table = UInt32(header.table)
        return rule.read(message, after: fib_rule_hdr.self) { rule, attribute in
            switch Int(attribute.type) {
            case FRA_DST: rule.prefix = attribute.prefix(header.dst_len)
            case FRA_SRC: rule.from = attribute.prefix(header.src_len)
            case FRA_PRIORITY: rule.priority = attribute.number
            case FRA_FWMARK: rule.mark = attribute.number
            case FRA_TABLE: rule.table = attribute.number ?? rule.table
            case FRA_IIFNAME, FRA_OIFNAME: rule.interfaceName = attribute.text
            default: break
            }
        }
    }

    private static func nextHop(_ message: NetlinkMessage, _ change: Change) -> NetlinkNotification? {
        guard let header = message.familyHeader(nhmsg.self) else { return nil }
        var hop = NetlinkNotification(.nextHop, change, family: header.nh_family)
        hop.flags = header.nh_flags
        hop.origin = header.nh_protocol
        return hop.read(message, after: nhmsg.self) { hop, attribute in
            switch Int(attribute.type) {
            case NHA_ID: hop.nextHopID = attribute.number
            case NHA_OIF: hop.interface = attribute.number
            case NHA_GATEWAY: hop.gateway = attribute.address()
            default: break
            }
        }
    }

    private static func setting(_ message: NetlinkMessage, _ change: Change) -> NetlinkNotification? {
        guard let header = message.familyHeader(netconfmsg.self) else { return nil }
        var setting = NetlinkNotification(.setting, change, family: header.ncm_family)
        return setting.read(message, after: netconfmsg.self) { setting, attribute in
            if Int(attribute.type) == NETCONFA_IFINDEX { setting.interface = attribute.number }
        }
    }
}

extension NetlinkAttribute {
    /// Returns the value as an address with this prefix length; `nil` if it is not an address.
    fileprivate func prefix(_ length: UInt8) -> NetlinkNotification.Prefix? {
        address().map { NetlinkNotification.Prefix(address: $0, length: length) }
    }
}
