internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// Receives the kernel's notifications about everything a path depends on. It sends nothing.
///
/// Not safe for concurrent use: one thread owns it.
package final class EventSocket {
    /// What one drain found.
    package struct Batch: Hashable, Sendable {
        package var events: [NetlinkEvent] = []
        /// Notifications and datagrams that could not be read.
        package var malformed = 0
        /// Datagrams of other processes, which were ignored.
        package var foreign = 0
        /// Whether notifications were lost.
        package var isOverrun = false

        package init() {}
    }

    private let handle: NetlinkHandle
    private let buffer: UnsafeMutableRawBufferPointer
    private var drops: UInt32 = 0

    /// How many datagrams one drain takes, so that a storm does not keep the thread from its other work.
    private static let longestDrain = 1024

    /// Opens a socket in the calling thread's network namespace and joins every group before anything is
    /// read, so that no change after this call goes unnoticed.
    ///
    /// - Parameters:
    ///   - receiveBufferSize: The receive buffer to ask for, in bytes.
    ///   - inherited: A netlink socket of the route protocol that somebody else opened, with a greater
    ///     buffer than this process may ask for, which stays as it is. A copy of the descriptor is used.
    ///   - classes: What to be told of; for tests, everything else needs all.
    /// - Throws: ``SystemError`` of `socket`, `bind`, or of joining a group.
    package init(
        receiveBufferSize: CInt,
        inherited: CInt? = nil,
        classes: Set<NetlinkEvent.Class> = Set(NetlinkEvent.Class.allCases)
    ) throws(SystemError) {
        if let inherited {
            handle = try NetlinkHandle.adopting(copyOf: inherited)
            // Whoever had it before, perhaps this program before it was started anew, may have left a filter.
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

    /// The descriptor to wait on. An error on it must be drained like data: a lost notification may leave
    /// nothing else to see.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Has the kernel pass on only what the filter lets through, from now on. The change is atomic: no
    /// notification is lost to it.
    ///
    /// - Throws: ``SystemError`` of `setsockopt`: `ENOMEM` when the program is larger than
    ///   `net.core.optmem_max` allows. The filter before stays.
    package func attach(_ filter: EventFilter) throws(SystemError) {
        try handle.attach(filter.program)
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

    /// A second witness beside `ENOBUFS`, which is reported once, to whoever reads next: the kernel also
    /// counts what it dropped.
    private func noteDrops(_ batch: inout Batch) {
        let count = handle.dropCount
        if count != drops { batch.isOverrun = true }
        drops = count
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
        if event == .irrelevant { return }
        events.append(event)
        if event == .malformed { malformed += 1 }
    }
}
