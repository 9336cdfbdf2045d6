internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// A netlink socket that receives the kernel's notifications about everything that affects a path. It sends nothing.
///
/// It must be used by one thread only.
package final class EventSocket {
    /// The result of ``EventSocket/receive()`` or ``EventSocket/drain()``.
    package struct Batch: Hashable, Sendable {
        package var events: [NetlinkEvent] = []
        /// The number of notifications and datagrams that could not be parsed.
        package var malformed = 0
        /// The number of datagrams from other processes. They were ignored.
        package var foreign = 0
        /// Whether the kernel dropped notifications.
        package var isOverrun = false

        package init() {}
    }

    /// The default size of the receive buffer: 4 MiB, enough for 5,000 pending notifications of routes.
    package static let defaultReceiveBufferSize: CInt = 4 * 1024 * 1024

    private let handle: NetlinkHandle
    private let buffer = DatagramBuffer()
    private var drops: UInt32 = 0

    /// The maximum number of datagrams per drain. The limit gives the thread time for other work during a storm of
    /// notifications.
    private static let maxDatagramsPerDrain = 1024

    /// Opens a socket in the network namespace of the calling thread. The socket joins all groups before anything is
    /// read, so that it misses no later change.
    ///
    /// - Parameters:
    ///   - receiveBufferSize: The requested size of the receive buffer in bytes.
    ///   - inherited: A netlink socket of the route protocol that another process opened; `nil` to open a new one. The
    ///     other process may have requested a larger buffer than this process may. The buffer is not changed, and a
    ///     duplicate of the descriptor is used.
    ///   - classes: The classes of notifications to receive. Default: all. Only tests pass fewer.
    /// - Throws: ``SystemError`` of `socket` or `bind`, or of joining a group.
    package init(
        receiveBufferSize: CInt,
        inherited: CInt? = nil,
        classes: Set<NetlinkEvent.Class> = Set(NetlinkEvent.Class.allCases)
    ) throws(SystemError) {
        if let inherited {
            handle = try NetlinkHandle.adopting(copyOf: inherited)
            // A previous owner of the socket, for example this program before a restart, may have left a filter.
            try handle.attach(EventFilter.open.program)
        } else {
            handle = try NetlinkHandle.connected()
            handle.setReceiveBuffer(receiveBufferSize)
        }
        for kind in classes { try handle.join(kind) }
        drops = handle.dropCount
    }

    /// The descriptor to wait for. Call ``receive()`` when it is readable and when it reports an error: after a lost
    /// notification, the error may be the only sign.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Makes the kernel deliver only the notifications that the filter passes. The change is atomic: no notification is
    /// lost.
    ///
    /// - Throws: ``SystemError`` of `setsockopt`, with `ENOMEM` if the program is larger than `net.core.optmem_max`
    ///   allows. The previous filter then stays attached.
    package func attach(_ filter: EventFilter) throws(SystemError) {
        try handle.attach(filter.program)
    }

    /// Receives pending notifications with one system call. Others may remain, and the loss of others may not be
    /// detected yet: if ``needsDraining`` is then `true`, ``drain()`` must follow.
    ///
    /// The caller may read the kernel's state before it drains the socket. If the system call reports an overrun, this
    /// method drains the socket itself, because the caller may then read the kernel's state only after that.
    ///
    /// - Throws: ``SystemError`` if the socket is unusable and must be opened again.
    package func receive() throws(SystemError) -> Batch {
        var batch = Batch()
        repeat {
            guard try receiveNext(into: &batch) else { break }
        } while !buffer.isEmpty
        if batch.isOverrun { try drain(into: &batch) }
        return batch
    }

    /// Whether ``receive()`` may have left notifications in the kernel's queue, or the kernel has dropped some.
    ///
    /// A notification that arrives after ``receive()`` makes the descriptor readable again instead.
    package var needsDraining: Bool {
        !buffer.isPartlyFilled || handle.dropCount != drops
    }

    /// Receives all pending notifications, up to a limit of datagrams. If others remain, the descriptor stays readable.
    ///
    /// After an overrun, the kernel silently drops everything until its queue has been empty once. In that case this
    /// method ignores the limit and returns only when the queue is empty. The caller may read the kernel's state only
    /// after that.
    ///
    /// - Throws: ``SystemError`` if the socket is unusable and must be opened again.
    package func drain() throws(SystemError) -> Batch {
        var batch = Batch()
        try drain(into: &batch)
        return batch
    }

    private func drain(into batch: inout Batch) throws(SystemError) {
        var received = 0
        // A datagram in the buffer does not make the descriptor readable.
        while received < Self.maxDatagramsPerDrain || batch.isOverrun || !buffer.isEmpty {
            received += 1
            guard try receiveNext(into: &batch) else { return noteDrops(&batch) }
        }
    }

    /// Adds the next datagram, or an overrun, to a batch. Returns `false` if none is pending.
    private func receiveNext(into batch: inout Batch) throws(SystemError) -> Bool {
        switch handle.receive(into: buffer) {
        case .nothing: return false
        case .datagram(let datagram): batch.add(datagram)
        case .foreign: batch.foreign += 1
        case .overrun: batch.isOverrun = true
        case .failed(let errno): throw SystemError(call: "netlink event", errno: errno)
        }
        return true
    }

    /// Detects dropped messages by the kernel's drop counter. `ENOBUFS` alone is not reliable: the kernel returns it
    /// from one receive call only, and other processes may read an inherited socket, too.
    private func noteDrops(_ batch: inout Batch) {
        let count = handle.dropCount
        if count != drops { batch.isOverrun = true }
        drops = count
    }
}

extension EventSocket.Batch {
    /// The events without duplicates, which are common in storms. A single event, the usual case, is not hashed.
    package var distinctEvents: [NetlinkEvent] {
        events.count > 1 ? Array(Set(events)) : events
    }

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

/// A netlink socket that receives the kernel's notifications as bytes, to display or record them.
///
/// It must be used by one thread only.
package final class NotificationSocket {
    /// A datagram, or the loss of datagrams.
    package enum Received: Hashable, Sendable {
        /// A datagram from the kernel with one or more messages.
        case datagram([UInt8])
        /// The kernel dropped notifications, because they arrived faster than they were read.
        case overrun
    }

    private let handle: NetlinkHandle
    // Callers wait for the descriptor, so a received datagram must not remain in the buffer.
    private let buffer = DatagramBuffer(capacity: 1)

    /// Opens a socket in the network namespace of the calling thread and joins all groups.
    ///
    /// - Parameter receiveBufferSize: The requested receive buffer in bytes. Default 4 MiB.
    /// - Throws: ``SystemError`` of `socket`, `bind`, or of joining a group.
    package init(receiveBufferSize: CInt = EventSocket.defaultReceiveBufferSize) throws(SystemError) {
        handle = try NetlinkHandle.connected()
        handle.setReceiveBuffer(receiveBufferSize)
        for kind in NetlinkEvent.Class.allCases { try handle.join(kind) }
    }

    /// The descriptor to wait for. Call ``next()`` when it is readable and when it reports an error.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Receives the next datagram or loss, without blocking. Returns `nil` if nothing is pending. Datagrams from other
    /// processes are skipped.
    ///
    /// - Throws: ``SystemError`` if the socket is unusable.
    package func next() throws(SystemError) -> Received? {
        while true {
            switch handle.receive(into: buffer) {
            case .nothing: return nil
            case .datagram(let datagram): return .datagram(Array(datagram))
            case .foreign: continue
            case .overrun: return .overrun
            case .failed(let errno): throw SystemError(call: "netlink notification", errno: errno)
            }
        }
    }
}

/// The memory for the datagrams that one system call receives. The owner takes them one by one.
final class DatagramBuffer {
    /// The size of the memory for one datagram: 64 KiB. The kernel limits the replies of dumps to 32 KiB, and
    /// notifications are much smaller.
    static let datagramSize = 64 * 1024
    /// The maximum number of datagrams that one system call receives: 8.
    ///
    /// The kernel replies to a lookup with two datagrams, and announces most changes with fewer than eight.
    static let maxCapacity = Int(NETWATCH_MAX_DATAGRAMS)

    private let memory: UnsafeMutableRawBufferPointer
    private let datagrams: UnsafeMutableBufferPointer<netwatch_datagram>
    private var received = 0
    private var taken = 0

    /// - Parameter capacity: The maximum number of datagrams: 1 to ``maxCapacity``, which is the default. With 1, no
    ///   datagram is left in the buffer when the descriptor is no longer readable.
    init(capacity: Int = DatagramBuffer.maxCapacity) {
        precondition((1...Self.maxCapacity).contains(capacity))
        // The kernel provides the pages of the memory when they are used first.
        memory = .allocate(byteCount: capacity * Self.datagramSize, alignment: 8)
        datagrams = .allocate(capacity: capacity)
        datagrams.initialize(repeating: netwatch_datagram())
    }

    deinit {
        memory.deallocate()
        datagrams.deallocate()
    }

    /// Whether all received datagrams were taken.
    var isEmpty: Bool { taken == received }

    /// Whether the last call of ``fill(from:)`` received fewer datagrams than it could. Then either no other was
    /// pending, or the socket has an error, which makes its descriptor ready again.
    var isPartlyFilled: Bool { received < datagrams.count }

    /// Receives the pending datagrams, up to the capacity. Overwrites the previous ones. Never blocks.
    ///
    /// - Returns: The error number if nothing was received, with `EAGAIN` if no datagram is pending; otherwise `nil`.
    func fill(from descriptor: CInt) -> CInt? {
        var count: CInt
        repeat {
            count = netwatch_receive(
                descriptor,
                memory.baseAddress,
                UInt(Self.datagramSize),
                datagrams.baseAddress,
                CInt(datagrams.count)
            )
        } while count < 0 && errno == EINTR
        taken = 0
        received = max(0, Int(count))
        guard count <= 0 else { return nil }
        return count < 0 ? errno : EAGAIN
    }

    /// Returns the next datagram. It stays valid until the buffer is filled again. The buffer must not be empty.
    func take() -> NetlinkHandle.Received {
        let datagram = datagrams[taken]
        let start = taken * Self.datagramSize
        taken += 1
        if datagram.sender != 0 { return .foreign }
        let end = start + Int(datagram.length)
        guard datagram.length <= Self.datagramSize else { return .overrun }
        return .datagram(UnsafeMutableRawBufferPointer(rebasing: memory[start..<end]))
    }
}
