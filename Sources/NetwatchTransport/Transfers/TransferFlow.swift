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
