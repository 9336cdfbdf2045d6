internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// Receives the kernel's notifications about everything a path depends on. It sends nothing.
///
/// Not safe for concurrent use: one thread owns it.
package final class EventSocket {
    /// What one drain found.
    package struct Batch: Hashable, Sendable {
        package var events: Set<NetlinkEvent> = []
        /// Notifications and datagrams that could not be read.
        package var malformed = 0
        /// Datagrams of other processes, which were ignored.
        package var foreign = 0
        /// Whether notifications were lost.
        package var isOverrun = false

        package init() {}
    }

    private static let groups = [
        RTNLGRP_LINK,
        RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
        RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
        RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
        RTNLGRP_NEXTHOP,
        // `ignore_routes_with_linkdown` changes what a lookup answers.
        RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF,
    ]

    private let handle: NetlinkHandle
    private let buffer: UnsafeMutableRawBufferPointer

    /// How many datagrams one drain takes, so that a storm does not keep the thread from its other work.
    private static let longestDrain = 1024

    /// Opens a socket in the calling thread's network namespace and joins every group before anything is
    /// read, so that no change after this call goes unnoticed.
    ///
    /// - Parameter receiveBufferSize: The receive buffer to ask for, in bytes.
    /// - Throws: ``SystemError`` of `socket`, `bind`, or of joining a group.
    package init(receiveBufferSize: CInt) throws(SystemError) {
        handle = try NetlinkHandle.connected()
        handle.setReceiveBuffer(receiveBufferSize)
        for group in Self.groups { try handle.join(group) }
        buffer = .allocate(byteCount: NetlinkHandle.bufferSize, alignment: 8)
    }

    deinit {
        buffer.deallocate()
    }

    /// The descriptor to wait on. An error on it must be drained like data: a lost notification may leave
    /// nothing else to see.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Receives until nothing is waiting, or a good many datagrams have come; the rest keeps the descriptor
    /// readable.
    ///
    /// After an overrun the kernel drops everything, silently, until the queue has been empty once. Then
    /// this does not return before it was, and only afterwards may the caller look at the kernel's state.
    ///
    /// - Throws: ``SystemError`` when the socket is unusable and has to be opened anew.
    package func drain() throws(SystemError) -> Batch {
        var batch = Batch()
        var received = 0
        while received < Self.longestDrain || batch.isOverrun {
            received += 1
            switch handle.receive(into: buffer) {
            case .nothing: return batch
            case .datagram(let count): batch.add(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
            case .foreign: batch.foreign += 1
            case .overrun: batch.isOverrun = true
            case .failed(let errno): throw SystemError(call: "netlink event", errno: errno)
            }
        }
        return batch
    }
}

extension EventSocket.Batch {
    /// Adds what a datagram announces; bytes that are no message become ``NetlinkEvent/malformed``.
    package mutating func add(_ datagram: UnsafeMutableRawBufferPointer) {
        var messages = NetlinkMessages(datagram)
        while let message = messages.next() { add(NetlinkEvent(message)) }
        if messages.isMalformed { add(.malformed) }
    }

    private mutating func add(_ event: NetlinkEvent) {
        events.insert(event)
        if event == .malformed { malformed += 1 }
    }
}
