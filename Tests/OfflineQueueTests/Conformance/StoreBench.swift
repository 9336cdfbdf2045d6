internal import Foundation
internal import OfflineQueue
internal import Testing

/// The implementations of `QueueStore`. All give the same guarantees, so every test in this directory runs with each of
/// them.
enum StoreKind: String, CaseIterable, Sendable {
    case sqlite

    func bench(_ adjust: (inout StoreSettings) -> Void = { _ in }) async throws -> StoreBench {
        var settings = StoreSettings()
        settings.limits.diskReserve = 0
        adjust(&settings)
        switch self {
        case .sqlite: return try await StoreBench(SQLiteFixture(), settings)
        }
    }
}

/// The storage of a store, which can be opened several times.
protocol StoreFixture: Sendable {
    func open(_ settings: StoreSettings, _ clock: StoreClock) async throws -> any QueueStore
}

struct SQLiteFixture: StoreFixture {
    let directory = TemporaryDirectory(marker: "conformance")

    func open(_ settings: StoreSettings, _ clock: StoreClock) async throws -> any QueueStore {
        try await SQLiteQueueStore(directory: directory.path, settings: settings, clock: clock)
    }
}

/// A store that can be reopened, with its clock.
final class StoreBench {
    let clock = TestStoreClock()
    let fixture: any StoreFixture
    /// The settings of the next ``reopen(afterReboot:releasing:)``.
    var settings: StoreSettings
    private(set) var store: any QueueStore

    init(_ fixture: any StoreFixture, _ settings: StoreSettings) async throws {
        self.fixture = fixture
        self.settings = settings
        store = try await fixture.open(settings, clock.clock)
    }

    /// Closes the store and opens it as a new owner, which recovers the requests in flight. This also stands for a
    /// crash, because a crash leaves the same data on the disk: everything that was committed.
    @discardableResult
    func reopen(afterReboot: Bool = false, releasing reasons: Set<HoldReason> = []) async throws
        -> [LaneRecord]
    {
        await store.close()
        if afterReboot { clock.reboot() }
        store = try await fixture.open(settings, clock.clock)
        return try await store.restart(releasing: reasons)
    }

    // MARK: Helpers

    /// Enqueues a request and returns its lane.
    @discardableResult
    func put(
        _ id: String,
        method: String = "POST",
        host: String = "example.com",
        isFIFO: Bool = false,
        body: String = "hello",
        _ adjust: (inout EnqueueOptions) -> Void = { _ in }
    ) async throws -> Int64 {
        let request = try new(id, method: method, host: host, isFIFO: isFIFO, body: body, adjust)
        let accepted = try await store.enqueue(request)[0]
        try #require(accepted.outcome == .accepted)
        return accepted.lane.id
    }

    @discardableResult
    func take(_ lane: Int64, _ limit: Int = 8) async throws -> [ClaimedRequest] {
        try await store.claim(limit, of: lane).requests
    }

    func takeOne(_ lane: Int64) async throws -> ClaimedRequest {
        try #require(try await take(lane, 1).first)
    }

    /// Enqueues and claims a request, and concludes it with a verdict.
    func finish(_ id: String, _ verdict: Verdict, body: String = "hello") async throws {
        let request = try await takeOne(try await put(id, host: "\(id).example", body: body))
        try #require(try await store.conclude(request, verdict))
    }

    func state(_ id: String) async throws -> QueuedRequest.State? { try await store.state(of: id) }

    func summary(_ id: String) async throws -> QueuedRequest {
        try #require(try await store.details(of: id)).summary
    }

    /// Returns the states of all unfinished requests by id.
    func waiting() async throws -> [String: QueuedRequest.State] {
        try await store.states().filter { !$0.value.isFinal }
    }
}

let day: Duration = .seconds(86_400)
