internal import Foundation
internal import Glibc
internal import OfflineQueue

/// A directory that is deleted when this object is released. It is in memory if possible, which is faster.
final class TemporaryDirectory: Sendable {
    let path: String

    init(marker: String = "queue") {
        let base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
        path = "\(base)/netwatch-\(marker)-\(UUID().uuidString)"
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func permissions(of name: String = "") -> mode_t? {
        var status = stat()
        return stat("\(path)/\(name)", &status) == 0 ? status.st_mode & 0o777 : nil
    }
}

extension TemporaryDirectory {
    /// Opens a store in the directory.
    func openStore(
        _ settings: StoreSettings = StoreSettings(),
        clock: TestStoreClock
    ) async throws -> SQLiteQueueStore {
        try await SQLiteQueueStore(directory: path, settings: settings, clock: clock.clock)
    }
}

/// The time at which most tests start: 2027-01-15 08:00:00 UTC.
let start = Timestamp(milliseconds: 1_800_000_000_000)

/// Returns a validated request with an inline body.
func new(
    _ id: String? = nil,
    method: String = "POST",
    host: String = "example.com",
    isFIFO: Bool = false,
    body: String = "hello",
    _ adjust: (inout EnqueueOptions) -> Void = { _ in }
) throws -> NewRequest {
    var options = EnqueueOptions(isFIFO: isFIFO, id: id)
    adjust(&options)
    let request = QueueRequest(method: method, url: "http://\(host)/\(id ?? "")", body: Data(body.utf8))
    let stored: StoredBody = body.isEmpty ? .none : .inline(Data(body.utf8))
    return try NewRequest(request, options: options, body: stored, now: start.date)
}

extension QueueRequest {
    /// Returns a POST request to `example.com`.
    static func post(
        _ path: String = "",
        scheme: String = "https",
        body: Body = .data(Data("b".utf8))
    ) -> QueueRequest {
        QueueRequest(method: "POST", url: "\(scheme)://example.com/\(path)", body: body)
    }
}

extension OfflineQueue {
    /// Enqueues a request without a body. Its id is also the path of its URL.
    ///
    /// - Parameter adjust: Changes the options. Default: no changes.
    @discardableResult
    nonisolated func enqueue(
        id: String,
        host: String = "example.com",
        method: String = "POST",
        credential: String? = nil,
        _ adjust: (inout EnqueueOptions) -> Void = { _ in }
    ) async throws -> Receipt {
        var options = EnqueueOptions(id: id)
        options.credential = credential
        adjust(&options)
        return try await enqueue(QueueRequest(method: method, url: "https://\(host)/\(id)"), options: options)
    }
}

/// Verdicts with the cause `refused`, for tests that do not check the cause.
extension Verdict {
    static func dead(reason: String) -> Verdict { .dead(.refused, reason: reason) }
}

extension RequestLifecycle.Ending {
    static func dead(reason: String) -> RequestLifecycle.Ending { .dead(.refused, reason: reason) }
}

extension QueueStore {
    @discardableResult
    func enqueue(_ requests: NewRequest...) async throws -> [EnqueuedRequest] {
        try await enqueue(requests)
    }

    /// Reopens all lanes, and returns those with requests to send.
    func reopen(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord] {
        _ = try await reopen(.all, releasing: reasons)
        return try await busyLanes()
    }

    /// Recovers the store after a restart, and returns the lanes with requests to send.
    func restart(releasing reasons: Set<HoldReason> = []) async throws -> [LaneRecord] {
        try await recover(releasing: reasons)
        return try await busyLanes()
    }

    func busyLanes() async throws -> [LaneRecord] {
        try await busyLanes(in: .all, after: 0, limit: .max).filter { $0.due != nil }
    }

    func claim(
        _ limit: Int = 8,
        of lane: Int64,
        releasing: Set<HoldReason>? = nil,
        retries: RetryAllowance? = nil
    ) async throws -> ClaimedBatch {
        try await claim([LaneClaim(lane: lane, limit: limit, releasing: releasing, retries: retries)])[0]
    }

    @discardableResult
    func conclude(
        _ request: ClaimedRequest,
        _ verdict: Verdict,
        token: String? = nil,
        delay: Duration = .zero,
        status: Int? = nil,
        detail: String? = nil,
        laneClosure: Duration? = nil,
        attempt: AttemptRecord? = nil,
        response: RecordedResponse? = nil,
        overrun: Duration? = nil
    ) async throws -> Bool {
        let conclusion = Conclusion(
            sequence: request.sequence,
            token: token ?? request.lease.token,
            verdict: verdict,
            delay: delay,
            status: status,
            detail: detail,
            laneClosure: laneClosure,
            attempt: attempt,
            response: response,
            overrun: overrun
        )
        return try await conclude([conclusion])[0]
    }

    /// Returns the states of all requests by id, including finished ones.
    func states() async throws -> [String: QueuedRequest.State] {
        Dictionary(uniqueKeysWithValues: try await all().map { ($0.id, $0.state) })
    }

    func all(_ states: Set<QueuedRequest.State>? = nil) async throws -> [QueuedRequest] {
        try await page(RequestQuery(states: states, limit: 100_000)).requests
    }

    func state(of id: String) async throws -> QueuedRequest.State? {
        try await details(of: id)?.summary.state
    }
}

/// An alias of `OfflineQueue.Expectation`, for files in which that name conflicts with `Testing.Expectation`.
typealias Expected = Expectation

extension Scheduler.LaneInfo {
    init(
        id: Int64,
        origin: Origin,
        label: String = "",
        mode: LaneKey.Mode,
        constraints: RequestConstraints = RequestConstraints(),
        notBefore: Moment? = nil
    ) {
        let key = LaneKey(origin: origin, label: label, mode: mode, constraints: constraints)
        self.init(id: id, key: key, notBefore: notBefore)
    }

    var mode: LaneKey.Mode { key.mode }

    /// Creates a lane to the origin `https://host`.
    init(id: Int64, host: String, mode: LaneKey.Mode, notBefore: Moment? = nil) {
        let origin = Origin(scheme: "https", host: host, port: 443)
        self.init(id: id, origin: origin, mode: mode, notBefore: notBefore)
    }
}

extension Endpoint {
    /// The endpoint of `http://host`.
    static func http(_ host: String) -> Endpoint { Endpoint(host: host, port: 80) }

    /// The endpoint of `https://host`.
    static func https(_ host: String) -> Endpoint { Endpoint(host: host, port: 443) }
}

extension Scheduler.Event {
    /// Returns the event that one lane has requests, the first of which is due at `due`.
    static func rows(_ info: Scheduler.LaneInfo, due: Moment) -> Scheduler.Event {
        .lanes([Scheduler.LaneRows(info, due: due)])
    }
}
