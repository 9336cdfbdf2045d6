internal import CNetwatchCurl

/// The directions in which a transfer is paused, and the reasons.
///
/// libcurl has only one pause mask, without reasons, so it must receive ``directions`` after each change. It calls the
/// transfer's callbacks from within `curl_easy_pause(3)`, so that call must not be part of a mutating access to this
/// value.
struct TransferFlow {
    /// The directions that the caller has paused.
    private(set) var paused: TransferPause
    private var isWaitingForSource = false
    private var limiter = ReceiveLimiter()

    init(paused: TransferPause) {
        self.paused = paused
    }

    /// All directions that are paused now.
    var directions: TransferPause {
        var directions = paused
        if isWaitingForSource { directions.insert(.sending) }
        if limiter.isPaused { directions.insert(.receiving) }
        return directions
    }

    mutating func pause(_ directions: TransferPause) {
        paused.formUnion(directions)
    }

    // These functions return whether the transfer was paused for the reason that ends now.

    /// Ends the pause of the caller.
    mutating func resume() -> Bool {
        defer { paused = [] }
        return !paused.isEmpty
    }

    mutating func sourceIsReady() -> Bool {
        defer { isWaitingForSource = false }
        return isWaitingForSource
    }

    /// Ends the pause of ``ReceiveLimiter``. Called in a new turn, in which more bytes may be received.
    mutating func resumeReceiving() -> Bool {
        defer { limiter.isPaused = false }
        return limiter.isPaused
    }

    /// Records that the source of the request's body has no bytes now.
    mutating func waitForSource() {
        isWaitingForSource = true
    }

    /// Records that the transfer begins again over a new connection.
    ///
    /// - Parameter paused: The directions that the caller has paused meanwhile.
    mutating func restart(paused: TransferPause) {
        self.paused = paused
        isWaitingForSource = false
    }

    // MARK: Receiving

    /// Returns whether the callback may take the next bytes of the body; see ``ReceiveLimiter/mayReceive(received:)``.
    mutating func mayReceive(received: Int64) -> Bool { limiter.mayReceive(received: received) }

    /// Returns whether the next part of a read may be decoded; see ``ReceiveLimiter/mayContinue()``.
    mutating func mayContinue() -> Bool { limiter.mayContinue() }

    mutating func beginPart() { limiter.beginPart() }

    /// Returns whether decoded bytes are within the limit; see ``ReceiveLimiter/accepts(_:)``.
    mutating func accepts(_ count: Int) -> Bool { limiter.accepts(count) }

    mutating func stopReceivingForTurn() {
        limiter.isStoppedForTurn = true
    }

    mutating func turnDidEnd() {
        limiter.turnDidEnd()
    }
}

/// The directions in which a transfer is paused.
package struct TransferPause: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    package static let receiving = TransferPause(rawValue: 1)
    package static let sending = TransferPause(rawValue: 2)
    package static let all: TransferPause = [.receiving, .sending]
    package static let none: TransferPause = []

    // The functions of `OptionSet` are not specialized in other modules, where they are slow.
    package var isEmpty: Bool { rawValue == 0 }

    package static func == (one: TransferPause, other: TransferPause) -> Bool {
        one.rawValue == other.rawValue
    }
}

extension TransferPause {
    /// The mask for `curl_easy_pause(3)`.
    var mask: CInt {
        (contains(.receiving) ? CURLPAUSE_RECV : 0) | (contains(.sending) ? CURLPAUSE_SEND : 0)
    }
}

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

/// How often and over which connections a request was sent, and what the server said about that.
struct SendState {
    /// The number of times that the request was sent, completely or in part. A time does not count if the server
    /// received nothing.
    private(set) var count = 0
    /// The number of bytes that the connection had sent before the request; `nil` until the request is sent. Always
    /// `nil` for a unix socket.
    private(set) var offset: UInt64?
    /// The number of bytes sent over earlier connections.
    private(set) var earlierBytes: Int64 = 0
    /// Whether the transfer has lost its connection, or libcurl requested a connection that was not prepared. The
    /// reasons are:
    ///
    /// - The connection that libcurl was expected to reuse has just closed.
    /// - The server closed a reused connection before the response.
    /// - The server sent data over a reused connection before the request.
    /// - The packets of the connection were lost; see ``Transfer/markUnsent()``.
    /// - The program must decide about the server's certificates first.
    private(set) var lacksConnection = false
    /// Whether the server has refused the request over HTTP/2 and requires HTTP/1.1 (RFC 9113 §7, `HTTP_1_1_REQUIRED`).
    private(set) var requiresHTTP1 = false
    /// Whether the server refused the request over HTTP/2 when it was last sent, and requires HTTP/1.1. The request may
    /// then be sent once more.
    private(set) var isRefusedOverHTTP2 = false
    private var isRefusedByGoAway = false
    private var wasAddedAgain = false

    /// Whether libcurl has run the transfer once, and has sent the request once.
    var isFirst: Bool { count == 1 && !wasAddedAgain }

    /// Whether the server said that it did not process the request when it was sent for the first and only time.
    var isUnprocessed: Bool { isRefusedByGoAway && count == 1 && earlierBytes == 0 }

    /// Records that the request is about to be sent.
    ///
    /// - Parameter offset: The number of bytes that the connection has sent so far; `nil` if it is not a TCP
    ///   connection.
    mutating func willSend(from offset: UInt64?) {
        count += 1
        self.offset = offset
        isRefusedOverHTTP2 = false
    }

    /// Records that the server has received nothing over the last connection.
    ///
    /// - Parameters:
    ///   - wasSent: Whether ``count`` includes the last time that the request was sent.
    ///   - bytes: The number of bytes sent over the connection.
    mutating func markUnsent(wasSent: Bool, bytes: Int64) {
        loseConnection(bytes: bytes)
        if wasSent { count -= 1 }
        offset = nil
    }

    /// Records that the connection is lost.
    ///
    /// - Parameter bytes: The number of bytes sent over it.
    mutating func loseConnection(bytes: Int64) {
        lacksConnection = true
        earlierBytes += bytes
    }

    /// Records that libcurl runs the transfer again, with another connection.
    mutating func addAgain() {
        (lacksConnection, wasAddedAgain) = (false, true)
    }

    /// Records that the server has refused the request over HTTP/2 and requires HTTP/1.1.
    mutating func requireHTTP1() {
        (requiresHTTP1, isRefusedOverHTTP2) = (true, true)
    }

    /// Records a `GOAWAY` that says that the server processed no stream of the connection.
    mutating func refuseAllStreams() {
        isRefusedByGoAway = true
    }
}
