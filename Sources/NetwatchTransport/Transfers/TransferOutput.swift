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
