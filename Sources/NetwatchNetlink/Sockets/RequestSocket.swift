internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// A netlink socket that sends requests to the kernel and receives the replies. It joins no multicast group, so that
/// every message on it is a reply.
///
/// No method blocks, because the kernel replies while the request is being sent. The socket must be used by one thread
/// only.
package final class RequestSocket {
    /// The result of a dump: the entries of a kernel table.
    package struct Dump<Element> {
        package var elements: [Element] = []
        /// The number of messages that could not be parsed.
        package var malformed = 0
        /// Whether the table changed during every attempt to read it (`NLM_F_DUMP_INTR`). The elements may then come
        /// partly from the old and partly from the new table.
        package var isInterrupted = false
    }

    private let handle: NetlinkHandle
    private let buffer = DatagramBuffer()
    private let requests: UnsafeMutableRawBufferPointer
    /// The sequence number of the next lookup. Numbers of lookups are not reused, so the reply to an abandoned lookup
    /// is not mistaken for the reply to a later one. They begin at 0, far from libnl's own numbers, which begin with
    /// the current time.
    private var sequenceNumber: UInt32 = 0
    /// Called with each received datagram.
    private var onReply: ((UnsafeMutableRawBufferPointer) -> Void)?

    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// - Parameter receiveBufferSize: The requested size of the receive buffer in bytes. Default: 1 MiB.
    /// - Throws: ``SystemError`` of `socket` or `bind`.
    package init(receiveBufferSize: CInt = 1024 * 1024) throws(SystemError) {
        handle = try NetlinkHandle.connected()
        // Both options are optional, because an old kernel or a sandbox may refuse them. Without strict checking, the
        // kernel ignores the filters of dumps. Without error messages, the EINVAL of a blackhole cannot be
        // distinguished from the EINVAL of a malformed request.
        handle.enable(NETLINK_GET_STRICT_CHK)
        handle.enable(NETLINK_EXT_ACK)
        handle.setReceiveBuffer(receiveBufferSize)
        let batchLength = 2 * Self.batchSize * RouteQueryWriter.maxQueryLength
        requests = .allocate(byteCount: batchLength, alignment: 8)
    }

    deinit {
        requests.deallocate()
    }

    // MARK: Lookups

    /// The maximum number of queries in one send: 64. The kernel replies to each with two datagrams before the call
    /// returns. Replies to 64 queries fit into the smallest receive buffer that an unprivileged process gets.
    package static let batchSize = 64

    /// Looks up addresses in the kernel's routing tables (`RTM_GETROUTE`). Each query has two lookups; see
    /// ``RouteAnswer``.
    ///
    /// - Returns: The answers, in the order of the queries. A refusal by the kernel is an answer, too.
    /// - Throws: ``SystemError`` if not all answers arrive.
    package func lookUp(_ queries: [RouteQuery]) throws(SystemError) -> [RouteAnswer] {
        var answers: [RouteAnswer] = []
        answers.reserveCapacity(queries.count)
        do throws(SystemError) {
            for start in stride(from: 0, to: queries.count, by: Self.batchSize) {
                let batch = queries[start..<min(start + Self.batchSize, queries.count)]
                try readAnswers(batch.count, firstNumber: try ask(batch), into: &answers)
            }
        } catch {
            discardReplies()
            throw error
        }
        return answers
    }

    /// Discards the remaining replies to a failed request. After an overrun, the kernel drops all replies until its
    /// queue has been empty once.
    private func discardReplies() {
        while true {
            switch handle.receive(into: buffer) {
            case .nothing, .failed: return
            case .datagram, .foreign, .overrun: continue
            }
        }
    }

    /// Sends two requests for each query. Returns the sequence number of the first request. Each further request has
    /// the next number.
    private func ask(_ queries: ArraySlice<RouteQuery>) throws(SystemError) -> UInt32 {
        let firstNumber = sequenceNumber
        var writer = RouteQueryWriter(requests)
        for query in queries {
            writer.append(query, matchesTable: false, sequenceNumber: sequenceNumber)
            writer.append(query, matchesTable: true, sequenceNumber: sequenceNumber &+ 1)
            sequenceNumber &+= 2
        }
        try handle.send(writer.bytes)
        return firstNumber
    }

    private func readAnswers(
        _ count: Int,
        firstNumber: UInt32,
        into answers: inout [RouteAnswer]
    ) throws(SystemError) {
        for index in 0..<UInt32(count) {
            let number = firstNumber &+ 2 * index
            let lookup = try readAnswer(number)
            answers.append(RouteAnswer(lookup: lookup, tableMatch: try readAnswer(number &+ 1)))
        }
    }

    /// Receives the answer to the request with this sequence number. The kernel sends one reply per datagram, in the
    /// order of the requests.
    private func readAnswer(_ sequenceNumber: UInt32) throws(SystemError) -> RouteLookup {
        while let datagram = try receive() {
            var messages = NetlinkMessages(datagram)
            guard let message = messages.next() else { continue }
            if message.sequenceNumber == sequenceNumber { return try Self.answer(message) }
        }
        throw SystemError(call: "RTM_GETROUTE", errno: ENODATA)
    }

    private static func answer(_ message: NetlinkMessage) throws(SystemError) -> RouteLookup {
        if CInt(message.type) == NLMSG_ERROR, let refusal = RouteLookup(refusal: message) { return refusal }
        if CInt(message.type) == CInt(RTM_NEWROUTE), let route = Route(message) { return .route(route) }
        throw SystemError(call: "RTM_GETROUTE", errno: EBADMSG)
    }

    // MARK: Tables

    /// Reads all interfaces and addresses, as the datagrams of the kernel's replies.
    package func initialState() throws(SystemError) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        onReply = { datagrams.append(Array($0)) }
        defer { onReply = nil }
        _ = try links()
        _ = try addresses()
        return datagrams
    }

    /// Reads all interfaces.
    package func links() throws(SystemError) -> Dump<Link> {
        try dump(
            type: CInt(RTM_GETLINK),
            replyType: CInt(RTM_NEWLINK),
            header: ifinfomsg(),
            // Without this flag, most of a link message would be statistics.
            extendedMask: UInt32(RTEXT_FILTER_SKIP_STATS)
        ) { Link(netwatch_link($0)) }
    }

    /// Reads all addresses of all interfaces, of both families.
    package func addresses() throws(SystemError) -> Dump<InterfaceAddress> {
        try dump(
            type: CInt(RTM_GETADDR),
            replyType: CInt(RTM_NEWADDR),
            header: ifaddrmsg()
        ) { InterfaceAddress(netwatch_address($0)) }
    }

    /// Reads one interface. The result is empty if no interface has the index.
    package func link(_ index: UInt32) throws(SystemError) -> Dump<Link> {
        var header = ifinfomsg()
        header.ifi_index = CInt(bitPattern: index)
        let request = try NetlinkRequest.message(type: CInt(RTM_GETLINK), header: header)
        try request.put(CInt(IFLA_EXT_MASK), UInt32(RTEXT_FILTER_SKIP_STATS))
        let sequenceNumber = try handle.send(request)
        while let datagram = try receive() {
            var messages = NetlinkMessages(datagram)
            guard let message = messages.next(), message.sequenceNumber == sequenceNumber else { continue }
            return try Self.link(in: message)
        }
        throw SystemError(call: "RTM_GETLINK", errno: ENODATA)
    }

    private static func link(in message: NetlinkMessage) throws(SystemError) -> Dump<Link> {
        var result = Dump<Link>()
        switch CInt(message.type) {
        case CInt(RTM_NEWLINK): try result.add(message) { Link(netwatch_link($0)) }
        case NLMSG_ERROR where message.refusal == ENODEV: break
        case NLMSG_ERROR: throw SystemError(call: "RTM_GETLINK", errno: message.refusal)
        default: result.malformed += 1
        }
        return result
    }

    /// Reads the addresses of one family of one interface. The result is empty if no interface has the index.
    package func addresses(
        of interface: UInt32,
        _ family: IPAddress.Family
    ) throws(SystemError) -> Dump<InterfaceAddress> {
        var header = ifaddrmsg()
        header.ifa_family = family.number
        header.ifa_index = interface
        var result = try dump(
            type: CInt(RTM_GETADDR),
            replyType: CInt(RTM_NEWADDR),
            header: header
        ) { InterfaceAddress(netwatch_address($0)) }
        // A kernel before Linux 5.0 has no strict checking, and returns the addresses of all interfaces.
        result.elements.removeAll { $0.interface != interface }
        return result
    }

    /// Returns the properties of packets on which the policy rules of both families depend.
    ///
    /// Returns all properties if this cannot be determined: the rules change meanwhile, or the kernel does not list
    /// them, for example because it has no policy rules.
    package func ruleSelectors() -> RuleSelectors {
        let rules: Dump<RuleSelectors>
        do throws(SystemError) {
            rules = try dump(
                type: CInt(RTM_GETRULE),
                replyType: CInt(RTM_NEWRULE),
                header: fib_rule_hdr(),
                // The notification of the change causes another call.
                attempts: 1
            ) { (rules, message) in rules.addRule(message) }
        } catch {
            discardReplies()
            return .all
        }
        return rules.isInterrupted || rules.malformed > 0 ? .all : RuleSelectors(rules.elements)
    }

    /// Reads a table of the kernel. If the table changes meanwhile, reads it again.
    ///
    /// The result may be inconsistent even then. That is acceptable: during a storm of changes there may be no
    /// consistent result, and each change causes another lookup.
    ///
    /// - Parameter element: Returns the element of an object that libnl has parsed; `nil` for none.
    /// - Throws: ``SystemError`` if the kernel ends the dump with an error, or not all replies arrive.
    func dump<Element>(
        type: CInt,
        replyType: CInt,
        header: some BitwiseCopyable,
        extendedMask: UInt32? = nil,
        element: (OpaquePointer) -> Element?
    ) throws(SystemError) -> Dump<Element> {
        try dump(type: type, replyType: replyType, header: header, extendedMask: extendedMask) {
            (result, message) throws(SystemError) in try result.add(message, element)
        }
    }

    /// - Parameters:
    ///   - attempts: The maximum number of readings. Default: 5.
    ///   - add: Adds the elements of one message to the result.
    private func dump<Element>(
        type: CInt,
        replyType: CInt,
        header: some BitwiseCopyable,
        extendedMask: UInt32? = nil,
        attempts: Int = 5,
        add: (inout Dump<Element>, NetlinkMessage) throws(SystemError) -> Void
    ) throws(SystemError) -> Dump<Element> {
        var result = Dump<Element>()
        for _ in 0..<attempts {
            let request = try NetlinkRequest.message(type: type, flags: CInt(NLM_F_DUMP), header: header)
            if let extendedMask { try request.put(CInt(IFLA_EXT_MASK), extendedMask) }
            result = try collect(replyType, replyTo: try handle.send(request), add: add)
            if !result.isInterrupted { break }
        }
        return result
    }

    private func collect<Element>(
        _ type: CInt,
        replyTo sequenceNumber: UInt32,
        add: (inout Dump<Element>, NetlinkMessage) throws(SystemError) -> Void
    ) throws(SystemError) -> Dump<Element> {
        var result = Dump<Element>()
        while let datagram = try receive() {
            var messages = NetlinkMessages(datagram)
            while let message = messages.next() {
                guard message.sequenceNumber == sequenceNumber else { continue }
                if message.flags & UInt16(NLM_F_DUMP_INTR) != 0 { result.isInterrupted = true }
                switch CInt(message.type) {
                // A complete dump ends with 0. With ENODEV, the interface of a filtered dump does not exist. With any
                // other error, entries may be missing.
                case NLMSG_DONE, NLMSG_ERROR:
                    let errno = message.refusal
                    guard errno == 0 || errno == ENODEV else {
                        throw SystemError(call: "netlink dump", errno: errno)
                    }
                    return result
                // Other message types must not reach libnl's parsers: libnl creates a different type of object for each
                // message type.
                case type: try add(&result, message)
                default: result.malformed += 1
                }
            }
            if messages.isMalformed { result.malformed += 1 }
        }
        throw SystemError(call: "netlink dump", errno: ENODATA)
    }

    /// Returns the next datagram from the kernel; `nil` if none is pending.
    private func receive() throws(SystemError) -> UnsafeMutableRawBufferPointer? {
        while true {
            switch handle.receive(into: buffer) {
            case .datagram(let datagram):
                onReply?(datagram)
                return datagram
            case .nothing: return nil
            case .foreign: continue
            case .overrun: throw SystemError(call: "netlink reply", errno: ENOBUFS)
            case .failed(let errno): throw SystemError(call: "netlink reply", errno: errno)
            }
        }
    }
}

extension NetlinkMessage {
    /// The error number at the start of an `NLMSG_ERROR` or `NLMSG_DONE` message.
    fileprivate var refusal: CInt {
        familyHeader(CInt.self).map { -$0 } ?? EBADMSG
    }
}

extension RequestSocket.Dump {
    /// Parses one message of a dump with libnl, and adds the result of `element`.
    ///
    /// - Throws: A ``SystemError`` if the process exits.
    fileprivate mutating func add(
        _ message: NetlinkMessage,
        _ element: (OpaquePointer) -> Element?
    ) throws(SystemError) {
        try LibraryParsers.use { parse(message, element) }
    }

    private mutating func parse(_ message: NetlinkMessage, _ element: (OpaquePointer) -> Element?) {
        var parsed: OpaquePointer?
        withUnsafeMutablePointer(to: &parsed) { slot in
            let result = netwatch_parse_route_object(
                message.header,
                { object, context in
                    // libnl frees the object together with its message. Retaining it here prevents that.
                    nl_object_get(object)
                    context!.assumingMemoryBound(to: OpaquePointer?.self).pointee = object
                },
                slot
            )
            if result < 0 { malformed += 1 }
        }
        guard let parsed else { return }
        if let value = element(parsed) { elements.append(value) }
        nl_object_put(parsed)
    }
}

extension RequestSocket.Dump<RuleSelectors> {
    /// Adds the selectors of a policy rule, unless it has none of those that matter.
    fileprivate mutating func addRule(_ message: NetlinkMessage) {
        guard let selectors = RuleSelectors(message) else { return malformed += 1 }
        if !selectors.isEmpty { elements.append(selectors) }
    }
}

// MARK: - Fuzzing

extension RequestSocket {
    /// Parses a datagram as a reply of every kind and as a notification, and discards the results. For fuzzing.
    package static func readReplies(in datagram: UnsafeMutableRawBufferPointer) {
        for message in NetlinkMessages(datagram) {
            _ = try? answer(message)
            _ = NetlinkNotification(message)
            switch CInt(message.type) {
            case CInt(RTM_NEWLINK), CInt(RTM_DELLINK):
                var links = Dump<Link>()
                try? links.add(message) { Link(netwatch_link($0)) }
            case CInt(RTM_NEWADDR), CInt(RTM_DELADDR):
                var addresses = Dump<InterfaceAddress>()
                try? addresses.add(message) { InterfaceAddress(netwatch_address($0)) }
            case CInt(RTM_NEWRULE), CInt(RTM_DELRULE):
                var rules = Dump<RuleSelectors>()
                rules.addRule(message)
            default: break
            }
        }
    }
}
