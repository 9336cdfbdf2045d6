internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// A query for the kernel's routing tables: which path would a packet of a connection take?
package struct RouteQuery: Hashable, Sendable {
    /// The destination of the packet. If it has a zone, the packet must leave through the interface of the zone.
    package var destination: IPAddress
    /// The index of the interface through which the packet must leave (`RTA_OIF`); 0 for any. A zone of the destination
    /// replaces it.
    package var outputInterface: UInt32
    /// The source address of the packet (`RTA_SRC`).
    package var source: IPAddress?
    /// The firewall mark of the packet (`RTA_MARK`).
    package var mark: UInt32?
    /// The user ID of the sender (`RTA_UID`); `nil` for the user of the calling process.
    package var userID: UInt32?
    /// The port to which the packet is sent (`RTA_DPORT`); `nil` if it is not known. Rules with `dport` then do not
    /// match.
    package var port: UInt16?
    /// The protocol of the packet (`RTA_IP_PROTO`), on which rules with `ipproto` depend. Default: TCP.
    package var transport = Transport.tcp

    package enum Transport: Hashable, Sendable {
        case tcp
        case udp
    }

    package init(
        _ destination: IPAddress,
        outputInterface: UInt32 = 0,
        source: IPAddress? = nil,
        mark: UInt32? = nil,
        userID: UInt32? = nil,
        port: UInt16? = nil
    ) {
        self.destination = destination
        self.outputInterface = destination.zone != 0 ? destination.zone : outputInterface
        self.source = source
        self.mark = mark
        self.userID = userID
        self.port = port
    }
}

/// The answers to the two lookups that are made for one query.
package struct RouteAnswer: Hashable, Sendable {
    /// The answer to the plain lookup: the path that a packet would take.
    package let lookup: RouteLookup
    /// The answer to the lookup with `RTM_F_FIB_MATCH`: the matching table entry with its prefix and the state of its
    /// next hops.
    package let tableMatch: RouteLookup

    package init(lookup: RouteLookup, tableMatch: RouteLookup) {
        self.lookup = lookup
        self.tableMatch = tableMatch
    }
}

/// A writer of contiguous `RTM_GETROUTE` messages, so that one call sends many of them. libnl would allocate a page for
/// each message.
struct RouteQueryWriter {
    /// The maximum length of a query in bytes: the netlink header, `struct rtmsg`, two attributes with IPv6 addresses
    /// and five with numbers.
    static let maxQueryLength = 16 + 12 + 2 * 20 + 5 * 8

    private let buffer: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ buffer: UnsafeMutableRawBufferPointer) {
        self.buffer = buffer
    }

    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer[..<count])
    }

    mutating func append(_ query: RouteQuery, matchesTable: Bool, sequenceNumber: UInt32) {
        let start = count
        var header = nlmsghdr()
        header.nlmsg_type = UInt16(RTM_GETROUTE)
        header.nlmsg_flags = UInt16(NLM_F_REQUEST)
        header.nlmsg_seq = sequenceNumber
        put(header)
        put(Self.route(query, matchesTable: matchesTable))
        put(query.destination, as: RTA_DST)
        putShort(UInt8(query.transport == .tcp ? IPPROTO_TCP : IPPROTO_UDP), as: RTA_IP_PROTO)
        if let port = query.port { putShort(port, as: RTA_DPORT) }
        if let source = query.source { put(source, as: RTA_SRC) }
        if query.outputInterface != 0 { put(query.outputInterface, as: RTA_OIF) }
        if let mark = query.mark { put(mark, as: RTA_MARK) }
        if let user = query.userID { put(user, as: RTA_UID) }
        // `nlmsg_len` is the first member.
        buffer.storeBytes(of: UInt32(count - start), toByteOffset: start, as: UInt32.self)
    }

    private static func route(_ query: RouteQuery, matchesTable: Bool) -> rtmsg {
        var route = rtmsg()
        route.rtm_family = query.destination.family.number
        route.rtm_dst_len = UInt8(query.destination.family.bitWidth)
        route.rtm_src_len = UInt8(query.source?.family.bitWidth ?? 0)
        if matchesTable {
            route.rtm_flags |= UInt32(RTM_F_FIB_MATCH)
            // Without this flag, the kernel reports the main table for every IPv4 route. For IPv6 it rejects the flag.
            if query.destination.family == .ipv4 { route.rtm_flags |= UInt32(RTM_F_LOOKUP_TABLE) }
        }
        return route
    }

    private mutating func put(_ address: IPAddress, as type: rtattr_type_t) {
        putHeader(type, length: address.family.bitWidth / 8)
        let bits = address.bits
        put(UInt32(truncatingIfNeeded: bits >> 96).bigEndian)
        guard address.family == .ipv6 else { return }
        put(UInt32(truncatingIfNeeded: bits >> 64).bigEndian)
        put(UInt64(truncatingIfNeeded: bits).bigEndian)
    }

    private mutating func put(_ value: UInt32, as type: rtattr_type_t) {
        putHeader(type, length: 4)
        put(value)
    }

    /// Appends a value of 1 or 2 bytes in network byte order, padded to 4 bytes.
    private mutating func putShort<Value: UnsignedInteger & FixedWidthInteger>(
        _ value: Value,
        as type: rtattr_type_t
    ) {
        putHeader(type, length: MemoryLayout<Value>.size)
        put((UInt32(value) << (32 - Value.bitWidth)).bigEndian)
    }

    private mutating func putHeader(_ type: rtattr_type_t, length: Int) {
        put(rtattr(rta_len: UInt16(4 + length), rta_type: UInt16(type.rawValue)))
    }

    /// Appends a value. The size of each value is a multiple of 4 bytes, as `NLMSG_ALIGNTO` and `RTA_ALIGNTO` require.
    private mutating func put<Value: BitwiseCopyable>(_ value: Value) {
        buffer.storeBytes(of: value, toByteOffset: count, as: Value.self)
        count += MemoryLayout<Value>.size
    }
}

/// Properties of a packet on which a policy rule may depend (ip-rule(8)): those that a lookup needs only if there is
/// such a rule.
package struct RuleSelectors: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The source address of an IPv4 packet (`from`).
    package static let ipv4Source = RuleSelectors(rawValue: 1)
    /// The destination port (`dport`), for either family.
    package static let destinationPort = RuleSelectors(rawValue: 2)

    /// The source address of an IPv6 packet (`from`).
    package static let ipv6Source = RuleSelectors(rawValue: 4)

    package static let all: RuleSelectors = [.ipv4Source, .destinationPort, .ipv6Source]
}

extension RuleSelectors {
    /// Reads the selectors of a rule; `nil` if the message is malformed.
    ///
    /// Does not use libnl, which would allocate an object for each of possibly thousands of rules.
    init?(_ message: NetlinkMessage) {
        guard let header = message.familyHeader(fib_rule_hdr.self) else { return nil }
        self = []
        if header.src_len > 0 { insert(header.family == AF_INET ? .ipv4Source : .ipv6Source) }
        var attributes = message.attributes(after: fib_rule_hdr.self)
        while let attribute = attributes.next() {
            if attribute.type == CInt(FRA_DPORT_RANGE) { insert(.destinationPort) }
        }
        if attributes.isMalformed { return nil }
    }
}
