internal import Foundation
internal import OfflineQueue

/// The events for one client, as server-sent events (WHATWG HTML §9.2).
actor EventStream {
    /// A comment, which clients ignore.
    static let keepAlive = Array(":\n\n".utf8)
    /// After this number of events that do not match the filter, the client receives an id, so that it can still resume
    /// the stream. The number is much smaller than the capacity of the buffer.
    private static let idInterval: UInt64 = 1024

    private var events: QueueEvents.Iterator
    private let filter: QueueEventFilter
    private let run: String
    private let client: EventRetention.Client
    private let caller: Caller
    /// Returns whether the caller still has the access with which the stream began.
    private let isAccessUnchanged: @Sendable () -> Bool
    private let encoder = ControlMessage.encoder
    /// The number of the last event whose id the client has received.
    private var lastNumber: UInt64

    init(
        _ events: QueueEvents,
        _ filter: QueueEventFilter,
        _ client: EventRetention.Client,
        for caller: Caller,
        isAccessUnchanged: @escaping @Sendable () -> Bool
    ) {
        self.events = events.makeAsyncIterator()
        self.filter = filter
        self.client = client
        self.caller = caller
        self.isAccessUnchanged = isAccessUnchanged
        run = events.run
        lastNumber = events.startNumber
    }

    /// The first bytes of the stream: how long a client waits before it reconnects, and where the stream begins.
    ///
    /// - Parameter isReset: Whether the client asked for events that are not known any more.
    func opening(isReset: Bool) -> [UInt8] {
        var text = "retry: 1000\n"
        if isReset {
            text += encoded(ControlMessage.Event(id: id(lastNumber), event: "reset", time: Date()))
        } else {
            text += "id: \(id(lastNumber))\n\n"
        }
        return Array(text.utf8)
    }

    /// Waits for events that match the filter; `nil` when the queue stops, and instead of events that occur after the
    /// caller's access has changed.
    func next() async -> [UInt8]? {
        while true {
            // The iterator is copied, because an actor's property cannot be passed inout to an asynchronous method.
            var iterator = events
            let batch = await iterator.nextBatch()
            events = iterator
            guard let last = batch.last?.number, isAccessUnchanged() else { return nil }
            let text = text(batch, last: last)
            if !text.isEmpty { return Array(text.utf8) }
        }
    }

    private func text(_ batch: [QueueEvent], last: UInt64) -> String {
        // The filter must not match what the caller may not read.
        let matching = batch.map { $0.visible(to: caller) }.filter(filter.matches)
        if let number = matching.last?.number { lastNumber = number }
        let text = matching.map { encoded(ControlMessage.Event($0, id: id($0.number))) }.joined()
        guard last - lastNumber >= Self.idInterval else { return text }
        lastNumber = last
        return text + "id: \(id(last))\n\n"
    }

    private func id(_ number: UInt64) -> String { EventID(run: run, number: number).description }

    /// Encoded JSON contains no line breaks, so `data` is one line.
    private func encoded(_ event: ControlMessage.Event) -> String {
        // Encoding fails only for numbers that JSON cannot express, which no event contains.
        let data = String(decoding: (try? encoder.encode(event)) ?? Data(), as: UTF8.self)
        return "id: \(event.id)\nevent: \(event.event)\ndata: \(data)\n\n"
    }
}

extension ControlMessage.Event {
    init(_ event: QueueEvent, id: String) {
        self.init(id: id, event: event.kind.rawValue, time: event.date)
        request = event.requestID
        host = event.host
        lane = event.lane
        tag = event.tag
        submitter = event.submitter
        oldState = event.oldState?.rawValue
        state = event.newState?.rawValue
        holdReason = event.holdReason?.rawValue
        due = event.due
        attempts = event.attempts
        status = event.status
        reason = event.reason
        lost = event.kind == .lost ? event.lostCount : nil
    }
}
