internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// Asks the kernel questions. It joins no multicast group, so that every message on it is an answer.
///
/// The kernel answers while the request is being sent, so nothing here ever waits. Not safe for
/// concurrent use: one thread owns it.
package final class RequestSocket {
    /// What one dump brought.
    package struct Dump<Element> {
        package var elements: [Element] = []
        /// Messages that could not be read.
        package var malformed = 0
        /// Whether the table changed on every try while it was being read (`NLM_F_DUMP_INTR`), so that
        /// the elements may be a mixture of before and after.
        package var isInterrupted = false
    }

    private let handle: NetlinkHandle
    private let buffer: UnsafeMutableRawBufferPointer

    /// Opens a socket in the calling thread's network namespace.
    ///
    /// - Throws: ``SystemError`` of `socket` or `bind`.
    package init() throws(SystemError) {
        handle = try NetlinkHandle.connected()
        // Both are refinements: without strict checking filters are ignored, without words an EINVAL that
        // is a blackhole cannot be told from one that is our mistake.
        handle.enable(NETLINK_GET_STRICT_CHK)
        handle.enable(NETLINK_EXT_ACK)
        handle.setReceiveBuffer(1024 * 1024)
        buffer = .allocate(byteCount: NetlinkHandle.bufferSize, alignment: 8)
    }

    deinit {
        buffer.deallocate()
    }

    // MARK: Lookups

    /// Looks an address up in the kernel's routing tables (`RTM_GETROUTE`), as the caller's user and
    /// without a mark.
    ///
    /// - Parameters:
    ///   - address: Where a packet would go. Its zone is the interface it has to leave by.
    ///   - matchesTable: Sets `RTM_F_FIB_MATCH`: describe the table entry instead of the packet's way.
    /// - Throws: ``SystemError`` when there is no answer to be had from the socket; a refusal of the kernel
    ///   is an answer.
    package func lookUp(_ address: IPAddress, matchesTable: Bool) throws(SystemError) -> RouteLookup {
        var header = rtmsg()
        header.rtm_family = UInt8(address.family == .ipv4 ? AF_INET : AF_INET6)
        header.rtm_dst_len = UInt8(address.bytes.count * 8)
        header.rtm_flags = matchesTable ? UInt32(RTM_F_FIB_MATCH) : 0
        let request = try NetlinkRequest.message(type: CInt(RTM_GETROUTE), header: header)
        try request.put(RTA_DST, address.bytes)
        if address.zone != 0 { try request.put(RTA_OIF, address.zone) }
        return try answer(to: try handle.send(request))
    }

    private func answer(to sequenceNumber: UInt32) throws(SystemError) -> RouteLookup {
        while let datagram = try receive() {
            for message in NetlinkMessages(datagram) where message.sequenceNumber == sequenceNumber {
                if CInt(message.type) == NLMSG_ERROR, let refusal = RouteLookup(refusal: message) {
                    return refusal
                }
                if CInt(message.type) == CInt(RTM_NEWROUTE), let route = Route(message) {
                    return .route(route)
                }
                throw SystemError(call: "RTM_GETROUTE", errno: EBADMSG)
            }
        }
        throw SystemError(call: "RTM_GETROUTE", errno: ENODATA)
    }

    // MARK: Tables

    /// Every interface.
    package func links() throws(SystemError) -> Dump<Link> {
        try dump(
            type: CInt(RTM_GETLINK),
            header: ifinfomsg(),
            // Statistics are most of a link message's bytes.
            extendedMask: UInt32(RTEXT_FILTER_SKIP_STATS)
        ) { Link(netwatch_link($0)) }
    }

    /// Every address of every interface, both families.
    package func addresses() throws(SystemError) -> Dump<InterfaceAddress> {
        try dump(type: CInt(RTM_GETADDR), header: ifaddrmsg()) { InterfaceAddress(netwatch_address($0)) }
    }

    /// Reads a table, again if it changed meanwhile, at most five times: under a storm of changes a
    /// consistent reading may never come, and another recomputation is about to follow anyway.
    private func dump<Element>(
        type: CInt,
        header: some BitwiseCopyable,
        extendedMask: UInt32? = nil,
        element: (OpaquePointer) -> Element?
    ) throws(SystemError) -> Dump<Element> {
        var result = Dump<Element>()
        for _ in 0..<5 {
            let request = try NetlinkRequest.message(type: type, flags: CInt(NLM_F_DUMP), header: header)
            if let extendedMask { try request.put(CInt(IFLA_EXT_MASK), extendedMask) }
            result = try collect(replyTo: try handle.send(request), element: element)
            if !result.isInterrupted { break }
        }
        return result
    }

    private func collect<Element>(
        replyTo sequenceNumber: UInt32,
        element: (OpaquePointer) -> Element?
    ) throws(SystemError) -> Dump<Element> {
        var result = Dump<Element>()
        while let datagram = try receive() {
            var messages = NetlinkMessages(datagram)
            while let message = messages.next() {
                guard message.sequenceNumber == sequenceNumber else { continue }
                if message.flags & UInt16(NLM_F_DUMP_INTR) != 0 { result.isInterrupted = true }
                switch CInt(message.type) {
                case NLMSG_DONE: return result
                case NLMSG_ERROR: throw SystemError(call: "netlink dump", errno: message.refusal)
                default: result.add(message, element)
                }
            }
            if messages.isMalformed { result.malformed += 1 }
        }
        throw SystemError(call: "netlink dump", errno: ENODATA)
    }

    /// The next datagram of the kernel; `nil` when none is waiting.
    private func receive() throws(SystemError) -> UnsafeMutableRawBufferPointer? {
        while true {
            switch handle.receive(into: buffer) {
            case .datagram(let count): return UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            case .nothing: return nil
            case .foreign: continue
            case .overrun: throw SystemError(call: "netlink reply", errno: ENOBUFS)
            case .failed(let errno): throw SystemError(call: "netlink reply", errno: errno)
            }
        }
    }
}

extension NetlinkMessage {
    /// The error number of an `NLMSG_ERROR` message.
    fileprivate var refusal: CInt {
        familyHeader(nlmsgerr.self).map { -$0.error } ?? EBADMSG
    }
}

extension RequestSocket.Dump {
    /// Lets libnl parse one message of a dump, and keeps what `element` makes of it.
    fileprivate mutating func add(_ message: NetlinkMessage, _ element: (OpaquePointer) -> Element?) {
        var parsed: OpaquePointer?
        withUnsafeMutablePointer(to: &parsed) { slot in
            let result = netwatch_parse_route_object(
                message.header,
                { object, context in
                    // The object lives as long as its message unless it is retained.
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
