internal import NetwatchEventLoop

/// The events of a transfer that have not been delivered yet.
///
/// The transfer delivers them at the end of a turn, for which it registers once.
struct TransferOutput {
    /// The time at which the head was added to the events.
    private(set) var headDelivered: BootInstant?
    private var events = EventBuffer()
    private var progress: TransferProgress
    private var milestones: Transfer.Milestones = []
    /// A head that has not been delivered, because libcurl may send the request again. It is final if libcurl does not.
    private var pendingHead: TransferHead?
    private var bodyBytes = 0
    private var isRegistered = false

    /// - Parameter length: The length of the request's body in bytes; `nil` if it is not known.
    init(requestBodyLength length: Int64?) {
        progress = TransferProgress(sent: 0, toSend: length, received: 0, toReceive: nil)
    }

    var hasDeliveredHead: Bool { headDelivered != nil }

    /// Whether enough is buffered to deliver it before the end of the turn.
    var isFull: Bool { events.isFull }

    /// Records that the transfer needs a delivery at the end of this turn. Returns whether it must register for that.
    mutating func register() -> Bool {
        defer { isRegistered = true }
        return !isRegistered
    }

    /// Records that a connection is ready and the request begins. A head that was received before is not final.
    mutating func requestBegins() {
        milestones.insert(.connected)
        pendingHead = nil
    }

    /// Keeps a head until it is known to be final.
    mutating func hold(_ head: TransferHead) {
        pendingHead = head
    }

    mutating func takePendingHead() -> TransferHead? {
        defer { pendingHead = nil }
        return pendingHead
    }

    mutating func add(_ head: TransferHead) {
        headDelivered = .now
        milestones.formUnion(head.isMultiplexed ? [.responded, .multiplexed] : .responded)
        events.add(.head(head))
    }

    /// Adds received bytes of the body, at most up to a limit. Returns the number of bytes above the limit.
    ///
    /// - Parameter limit: The maximum size of the whole body in bytes; `nil` for no limit.
    mutating func add(body bytes: UnsafeRawBufferPointer, limit: Int?) -> Int {
        bodyBytes += bytes.count
        let excess = max(0, bodyBytes - (limit ?? .max))
        if bytes.count > excess {
            events.add(body: UnsafeRawBufferPointer(rebasing: bytes.dropLast(excess)))
        }
        return excess
    }

    /// Adds a progress event if the progress has changed.
    mutating func add(_ current: TransferProgress) {
        guard current != progress else { return }
        progress = current
        events.add(.progress(current))
    }

    /// Ends a turn. Returns the milestones reached since the last call.
    mutating func turnDidEnd() -> Transfer.Milestones {
        defer { (isRegistered, milestones) = (false, []) }
        return milestones
    }

    /// Returns all events, including an incomplete piece of the body.
    mutating func take() -> [TransferEvent] {
        events.isEmpty ? [] : events.take()
    }

    /// Returns the complete events, and keeps an incomplete piece of the body for later.
    mutating func takeComplete() -> [TransferEvent] {
        events.takeComplete()
    }
}

/// A buffer that combines the events of a transfer, so that few deliveries are needed. A small response is delivered in
/// one call with its head, body and end.
struct EventBuffer {
    /// The number of complete body pieces that are buffered before delivery. Each delivery wakes a thread, so single
    /// pieces would be expensive.
    private static let maximumPieces = 4

    private var events: [TransferEvent] = []
    /// The current, incomplete piece of a body without a pool.
    private var piece: [UInt8] = []
    /// The current, incomplete piece of a body with a pool.
    private var block: PieceBlock?
    /// The number of complete pieces.
    private var pieces = 0
    /// The pool of reusable memory, which large bodies use. Dropped after a turn without a complete piece.
    private var pool: PiecePool?
    private var isPoolUsed = false

    var isEmpty: Bool { events.isEmpty && pieceCount == 0 }

    /// The number of bytes in the current piece.
    private var pieceCount: Int { piece.count + (block?.count ?? 0) }

    /// Whether enough complete pieces are buffered to deliver them before the end of the turn.
    var isFull: Bool { pieces >= Self.maximumPieces }

    mutating func add(_ event: TransferEvent) {
        endPiece()
        // A small response consists of a head, a piece, progress and an end.
        if events.isEmpty { events.reserveCapacity(4) }
        events.append(event)
    }

    mutating func add(body: UnsafeRawBufferPointer) {
        if pieceCount + body.count > BodyPiece.size {
            endPiece()
            pieces += 1
            pool = pool ?? PiecePool()
            isPoolUsed = true
        }
        guard let pool, body.count <= BodyPiece.size else { return piece.append(contentsOf: body) }
        let block = block ?? pool.take()
        block.append(body)
        self.block = block
    }

    /// Returns all events, including an incomplete piece. Called at the end of a turn.
    mutating func take() -> [TransferEvent] {
        endPiece()
        if !isPoolUsed, pool != nil { (pool, block) = (nil, nil) }
        isPoolUsed = false
        return takeComplete()
    }

    /// Returns the complete events, and keeps the incomplete piece for later.
    mutating func takeComplete() -> [TransferEvent] {
        defer { (events, pieces) = ([], 0) }
        return events
    }

    private mutating func endPiece() {
        if let block, block.count > 0 { end(block) }
        guard !piece.isEmpty else { return }
        events.append(.body(BodyPiece(piece)))
        piece = []
    }

    /// A small piece is copied, because a consumer that retains it would otherwise retain the whole block. A server may
    /// send a body byte by byte.
    private mutating func end(_ block: PieceBlock) {
        if block.count < BodyPiece.size / 2 {
            events.append(.body(BodyPiece(Array(block.bytes))))
            block.removeAll()
        } else {
            events.append(.body(BodyPiece(block)))
            self.block = nil
        }
    }
}

/// An object that delivers the events of a transfer to its caller. It also collects the metrics of the time before
/// libcurl receives the transfer.
///
/// The engine and the transfer share it, both on the engine's thread.
final class TransferReporter {
    /// The metrics known so far.
    private(set) var metrics: TransferMetrics
    private let body: TransferBody?
    let deliver: @Sendable ([TransferEvent]) -> Void

    init(
        of request: TransferRequest,
        startedAt: BootInstant,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) {
        metrics = TransferMetrics(startedAt: startedAt)
        body = request.body
        self.deliver = deliver
    }

    /// The time since the caller passed the transfer to the engine.
    var elapsed: Duration { metrics.startedAt.duration(to: .now) }

    /// Records that the transfer no longer waits for other transfers to the same host.
    func recordBegin() {
        metrics.begun = elapsed
    }

    func recordLookup(_ outcome: NameResolver.Outcome) {
        metrics.lookupEnded = elapsed
        if case .success(let addresses) = outcome { metrics.addresses = addresses }
    }

    func recordConnection(to peer: ConnectionPeer) {
        metrics.connected = elapsed
        if !peer.address.isLoopback { deliver([.connected(peer)]) }
    }

    /// Delivers the last events and the end of the transfer.
    ///
    /// - Parameters:
    ///   - failure: The reason why the transfer failed; `nil` after a success.
    ///   - metrics: The final metrics; `nil` for the metrics that this object has collected.
    ///   - events: The events to deliver before the end.
    func end(
        _ failure: TransferFailure?,
        _ metrics: TransferMetrics? = nil,
        after events: consuming [TransferEvent] = []
    ) {
        if case .source(let source) = body { source.cancel() }
        var metrics = metrics ?? self.metrics
        metrics.ended = elapsed
        var all = consume events
        all.append(.end(TransferEnd(failure: failure, metrics: metrics)))
        deliver(all)
    }
}
