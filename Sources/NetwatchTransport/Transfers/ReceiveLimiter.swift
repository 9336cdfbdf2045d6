/// A limit on how much of a body is received in one turn of the loop, and on how much one part of it decodes to.
///
/// In one turn libcurl reads up to a hundred times. Two kinds of servers make this a problem:
///
/// - A fast server could fill megabytes of memory before the caller can pause the transfer.
/// - A server that sends zeros as gzip could fill gigabytes, and the event loop would be blocked meanwhile.
struct ReceiveLimiter {
    /// The number of bytes of an encoded body that are decoded at a time. libcurl reads up to 16 KiB.
    ///
    /// With larger parts, more memory would be needed: the decoded data may be in memory up to three times, as received,
    /// buffered as events, and in delivery to the consumer.
    static let encodedPartSize = 7 * 1024
    /// The maximum number of decoded bytes of one part, about 7.2 MiB. This is the most that gzip can produce from
    /// ``encodedPartSize`` (1032 times as much), plus 64 KiB. Other encodings can expand data a thousand times more,
    /// but no legitimate server needs that.
    static let partLimit = encodedPartSize * 1032 + 64 * 1024
    /// The maximum number of body bytes in one turn. After that, other transfers must get their turn.
    private static let turnLimit = 1 << 20

    /// Whether ``mayReceive(received:)`` has paused receiving until the next turn.
    var isPaused = false
    /// Whether the caller has stopped receiving for the rest of this turn.
    var isStoppedForTurn = false
    private var turnBytes = 0
    /// The number of decoded bytes of the current part.
    private var partBytes = 0
    /// libcurl's count of received bytes at the last read. Each read increases it, so it identifies a read.
    private var read: Int64 = -1

    /// Returns whether the callback may take the bytes that libcurl delivers now. If not, libcurl delivers them again
    /// in the next turn.
    ///
    /// - Parameter received: The number of bytes received over the wire so far, as counted by libcurl.
    mutating func mayReceive(received: Int64) -> Bool {
        guard received != read else { return true }
        // Only the first delivery of a read may be paused here. libcurl then keeps all data of the read and delivers it
        // later with the same count, and that delivery must be accepted.
        read = received
        return mayContinue()
    }

    /// Returns whether more of the body may be received or decoded in this turn. If not, receiving is paused until the
    /// next turn.
    mutating func mayContinue() -> Bool {
        isPaused = isStoppedForTurn || turnBytes > Self.turnLimit
        return !isPaused
    }

    mutating func beginPart() { partBytes = 0 }

    /// Counts decoded bytes. Returns whether those of the current part are within ``partLimit``.
    mutating func accepts(_ count: Int) -> Bool {
        partBytes += count
        turnBytes += count
        return partBytes <= Self.partLimit
    }

    mutating func turnDidEnd() { (turnBytes, isStoppedForTurn) = (0, false) }
}
