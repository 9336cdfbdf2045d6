internal import CNetwatchCurl

/// Limits how much of a body is received at once.
///
/// In one turn libcurl reads up to a hundred times and decodes everything that it has read. A fast server could fill
/// megabytes before the caller can pause the transfer. A server that sends zeros as gzip could fill gigabytes while the
/// event loop is blocked.
struct ReceiveLimiter {
    /// The receive buffer size in bytes for bodies that may have to be decoded. libcurl always decodes all of a read.
    ///
    /// A larger buffer is faster. But up to three copies of the data decoded from gzip may be in memory: received,
    /// buffered as events, and in delivery to the consumer.
    static let encodedReadSize = 7 * 1024
    /// The maximum number of decoded bytes of one read: the most that gzip can produce, 1032 bytes per byte. Other
    /// codings can expand a thousand times more, which no legitimate server needs.
    static let readLimit = encodedReadSize * 1032 + 64 * 1024
    /// The maximum number of body bytes in one turn, so that other transfers make progress.
    private static let turnLimit = 1 << 20

    /// How to handle received bytes.
    enum Decision {
        case accept
        /// Receive the bytes in the next turn.
        case pause
        case reject
    }

    /// Whether receiving is paused until the next turn.
    var isPaused = false
    /// Whether the caller wants no more bytes in this turn.
    var isStoppedForTurn = false
    private var turnBytes = 0
    private var readBytes = 0
    /// libcurl's count of received bytes at the last read. It is different for every read.
    private var read: Int64 = -1

    /// - Parameter received: The number of bytes received over the wire, as libcurl counts them.
    mutating func decide(_ count: Int, received: Int64) -> Decision {
        if received != read {
            // libcurl keeps all data of a paused read and delivers it again with the same count, so it is not paused
            // twice.
            read = received
            readBytes = 0
            if isStoppedForTurn || turnBytes > Self.turnLimit { return .pause }
        }
        readBytes += count
        turnBytes += count
        return readBytes > Self.readLimit ? .reject : .accept
    }

    mutating func turnDidEnd() { (turnBytes, isStoppedForTurn) = (0, false) }
}

extension Transfer {
    /// Returns whether more of the body may be received now. Otherwise it is paused until the next turn, or the
    /// transfer ends.
    func mayReceive(_ count: Int) -> Bool {
        switch receiveLimiter.decide(count, received: easy.offset(CURLINFO_SIZE_DOWNLOAD_T)) {
        case .accept: return true
        case .pause:
            receiveLimiter.isPaused = true
            later { $0.resumeReceiving() }
        case .reject: stop = .bodyExpands
        }
        return false
    }
}
