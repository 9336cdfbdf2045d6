internal import CNetwatchNetlink
internal import Glibc

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
