/// A limit on how much of a body is received in one turn of the loop and in one read of libcurl.
///
/// In one turn libcurl reads up to a hundred times, and everything that it has read is decoded. Two kinds of servers
/// make this a problem:
///
/// - A fast server could fill megabytes of memory before the caller can pause the transfer.
/// - A server that sends zeros as gzip could fill gigabytes, and the event loop would be blocked meanwhile.
struct ReceiveLimiter {
    /// The size in bytes of libcurl's receive buffer for a body that may have to be decoded. All that libcurl has read
    /// is decoded at once.
    ///
    /// A larger buffer would be faster. But the decoded data may be in memory up to three times: as received, buffered
    /// as events, and in delivery to the consumer.
    static let encodedReadSize = 7 * 1024
    /// The maximum number of decoded bytes of one read, about 7.2 MiB. This is the most that gzip can produce from
    /// ``encodedReadSize`` (1032 times as much), plus 64 KiB. Other encodings can expand data a thousand times more,
    /// but no legitimate server needs that.
    static let readLimit = encodedReadSize * 1032 + 64 * 1024
    /// The maximum number of body bytes in one turn. After that, other transfers must get their turn.
    private static let turnLimit = 1 << 20

    /// Whether ``mayReceive(received:)`` has paused receiving until the next turn.
    var isPaused = false
    /// Whether the caller has stopped receiving for the rest of this turn.
    var isStoppedForTurn = false
    private var turnBytes = 0
    private var readBytes = 0
    /// libcurl's count of received bytes at the last read. Each read increases it, so it identifies a read.
    private var read: Int64 = -1

    /// Returns whether the callback may take the bytes that libcurl delivers now. If not, libcurl delivers them again
    /// in the next turn.
    ///
    /// - Parameter received: The number of bytes received over the wire so far, as counted by libcurl.
    mutating func mayReceive(received: Int64) -> Bool {
        guard received != read else { return true }
        // Only the first delivery of a read may be paused. libcurl then keeps all data of the read and delivers it
        // later with the same count, and that delivery must be accepted.
        read = received
        readBytes = 0
        guard isStoppedForTurn || turnBytes > Self.turnLimit else { return true }
        isPaused = true
        return false
    }

    /// Counts decoded bytes. Returns whether those of the current read are within ``readLimit``.
    mutating func accepts(_ count: Int) -> Bool {
        readBytes += count
        turnBytes += count
        return readBytes <= Self.readLimit
    }

    mutating func turnDidEnd() { (turnBytes, isStoppedForTurn) = (0, false) }
}
