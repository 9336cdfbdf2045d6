internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// Receives the kernel's notifications about everything that affects a path. Sends nothing.
///
/// Not safe for concurrent use: it must be used by one thread.
package final class EventSocket {
    /// The result of one drain.
    package struct Batch: Hashable, Sendable {
        package var events: [NetlinkEvent] = []
        /// The number of notifications and datagrams that could not be parsed.
        package var malformed = 0
        /// The number of datagrams from other processes, which were ignored.
        package var foreign = 0
        /// Whether notifications were lost.
        package var isOverrun = false

        package init() {}
    }

    /// The default size of the receive buffer in bytes: enough for 5,000 pending route notifications.
    package static let defaultReceiveBufferSize: CInt = 4 * 1024 * 1024

    private let handle: NetlinkHandle
    private let buffer: UnsafeMutableRawBufferPointer
    private var drops: UInt32 = 0

    /// The maximum number of datagrams per drain, so that a storm does not block the thread's other work.
    private static let maxDatagramsPerDrain = 1024

    /// Opens a socket in the network namespace of the calling thread. Joins all groups before anything is read, so
    /// that no change after this call is missed.
    ///
    /// - Parameters:
    ///   - receiveBufferSize: The requested receive buffer in bytes.
    ///   - inherited: A netlink socket of the route protocol, opened by another process with a larger buffer than
    ///     this process may request. The buffer is not changed. A duplicate of the descriptor is used.
    ///   - classes: The classes of notifications to receive. Only tests pass fewer than all.
    /// - Throws: ``SystemError`` of `socket`, `bind`, or of joining a group.
    package init(
        receiveBufferSize: CInt,
        inherited: CInt? = nil,
        classes: Set<NetlinkEvent.Class> = Set(NetlinkEvent.Class.allCases)
    ) throws(SystemError) {
        if let inherited {
            handle = try NetlinkHandle.adopting(copyOf: inherited)
            // A previous owner, perhaps this program before a restart, may have left a filter.
            try handle.attach(EventFilter.open.program)
        } else {
            handle = try NetlinkHandle.connected()
            handle.setReceiveBuffer(receiveBufferSize)
        }
        for kind in classes { try handle.join(kind) }
        buffer = .allocate(byteCount: NetlinkHandle.bufferSize, alignment: 8)
        drops = handle.dropCount
    }

    deinit {
        buffer.deallocate()
    }

    /// The descriptor to wait for. Drain it on an error as well as on data: after a lost notification, the error may
    /// be the only sign.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Makes the kernel deliver only what the filter passes. The change is atomic: no notification is lost.
    ///
    /// - Throws: ``SystemError`` of `setsockopt`: `ENOMEM` if the program is larger than `net.core.optmem_max`
    ///   allows. The previous filter then stays attached.
    package func attach(_ filter: EventFilter) throws(SystemError) {
        try handle.attach(filter.program)
    }

    /// Receives until nothing is pending or the limit of datagrams is reached. The remaining ones keep the descriptor
    /// readable.
    ///
    /// After an overrun, the kernel silently drops everything until the queue has been empty once. In that case this
    /// method does not return before the queue was empty. Only then may the caller read the kernel's state.
    ///
    /// - Throws: ``SystemError`` if the socket is unusable and must be reopened.
    package func drain() throws(SystemError) -> Batch {
        var batch = Batch()
        var received = 0
        while received < Self.maxDatagramsPerDrain || batch.isOverrun {
            received += 1
            switch handle.receive(into: buffer) {
            case .nothing:
                noteDrops(&batch)
                return batch
            case .datagram(let count): batch.add(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
            case .foreign: batch.foreign += 1
            case .overrun: batch.isOverrun = true
            case .failed(let errno): throw SystemError(call: "netlink event", errno: errno)
            }
        }
        return batch
    }

    /// Detects lost messages by the kernel's drop counter, in addition to `ENOBUFS`. The kernel reports `ENOBUFS`
    /// only once, to the next reader.
    private func noteDrops(_ batch: inout Batch) {
        let count = handle.dropCount
        if count != drops { batch.isOverrun = true }
        drops = count
    }
}

extension EventSocket.Batch {
    /// Adds the events of a datagram. Bytes that are not a message become ``NetlinkEvent/malformed``.
    package mutating func add(_ datagram: UnsafeMutableRawBufferPointer) {
        var messages = NetlinkMessages(datagram)
        while let message = messages.next() { add(NetlinkEvent(message)) }
        if messages.isMalformed { add(.malformed) }
    }

    private mutating func add(_ event: NetlinkEvent) {
        if event == .irrelevant { return }
        events.append(event)
        if event == .malformed { malformed += 1 }
    }
}
