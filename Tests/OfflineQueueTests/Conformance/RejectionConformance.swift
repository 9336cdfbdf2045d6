internal import Foundation
internal import OfflineQueue
internal import Testing

/// Requests that a server rejected because of their credential, and that are tried again with the same one.
@Suite struct RejectionConformance {
    private static let origin = Origin(scheme: "http", host: "example.com", port: 80)
    private static let api = CredentialScope(credential: "api", origin: origin)

    /// Enqueues a request and holds it for `auth` after an attempt.
    ///
    /// - Returns: The place of the request.
    @discardableResult
    private func reject(
        _ id: String,
        credential: String? = "api",
        lane: String? = nil,
        isFIFO: Bool = false,
        in bench: StoreBench
    ) async throws -> HeldPlace {
        let lane = try await bench.put(id, isFIFO: isFIFO) { ($0.credential, $0.lane) = (credential, lane) }
        return try await rejectAgain(lane, bench)
    }

    /// Claims the next request of a lane and holds it for `auth`.
    @discardableResult
    private func rejectAgain(_ lane: Int64, _ bench: StoreBench) async throws -> HeldPlace {
        let request = try await bench.takeOne(lane)
        let attempt = AttemptRecord(duration: .milliseconds(1), curlCode: 0)
        try await bench.store.conclude(
            request,
            .held(.auth),
            status: 401,
            detail: "HTTP 401",
            attempt: attempt
        )
        return HeldPlace(lane: lane, sequence: request.sequence)
    }

    @Test(arguments: StoreKind.allCases)
    func `one request of a credential and origin is tried at a time, and the next try is of another one`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        let a = try await reject("a", in: bench)
        let b = try await reject("b", in: bench)
        for id in ["other", "none"] {
            try await reject(id, credential: id == "none" ? nil : id, in: bench)
        }
        #expect(try await bench.store.release(.next(Self.api, after: nil)) == .some(last: a))
        #expect(try await bench.store.states().filter { $0.value == .pending }.map(\.key) == ["a"])
        #expect(try await bench.store.release(.next(Self.api, after: a)) == .waiting)
        try await rejectAgain(a.lane, bench)
        #expect(try await bench.store.release(.next(Self.api, after: a)) == .some(last: b))
        let c = try await reject("c", lane: "l", isFIFO: true, in: bench)
        #expect(try await bench.store.release(.next(Self.api, after: b)) == .some(last: c), "another lane")
        _ = try await bench.store.edit(.cancel, ["b"])
        try await rejectAgain(c.lane, bench)
        #expect(try await bench.store.release(.next(Self.api, after: c)) == .some(last: a))
    }

    @Test(arguments: StoreKind.allCases)
    func `all requests of a credential and origin are released, and keep their counters`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        for number in 0..<300 { try await reject("a\(number)", in: bench) }
        let last = try await reject("b", lane: "l", isFIFO: true, in: bench)
        try await reject("other", credential: "other", in: bench)
        try await reject("none", credential: nil, in: bench)
        #expect(try await bench.store.release(.all(Self.api)) == .some(last: last))
        #expect(try await bench.store.counts()[.pending] == 301)
        let summary = try await bench.summary("a299")
        #expect(summary.attempts == 0 && summary.deferrals == 1 && summary.lastError == "HTTP 401")
        #expect(try await bench.store.release(.all(Self.api)) == .none)
        let plain = CredentialScope(credential: nil, origin: Self.origin)
        _ = try await bench.store.release(.all(plain))
        #expect(try await bench.store.all([.held]).map(\.id) == ["other"])
    }

    @Test(arguments: StoreKind.allCases)
    func `requests of paused lanes, and those that no attempt has held, are not tried`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let (next, lanes) = (HeldRelease.next(Self.api, after: nil), HeldRelease.lanes(after: 0))
        #expect(try await bench.store.release(next) == .none)
        #expect(try await bench.store.release(lanes) == .none)
        let lane = try await bench.put("imported") { $0.credential = "api" }
        try await bench.store.conclude(try await bench.takeOne(lane), .held(.auth))
        #expect(try await bench.store.release(next) == .none)
        #expect(try await bench.store.release(.all(Self.api)) == .none)
        let a = try await reject("a", in: bench)
        let b = try await reject("b", credential: nil, lane: "l", in: bench)
        _ = try await bench.store.setPaused(true, lanes: LaneSelection(label: ""))
        #expect(try await bench.store.release(next) == .waiting)
        #expect(try await bench.store.release(lanes) == .some(last: HeldPlace(lane: b.lane, sequence: 0)))
        #expect(try await bench.state("a") == .held)
        #expect(try await bench.state("b") == .pending)
        #expect(try await bench.store.release(.lanes(after: b.lane)) == .none)
        _ = try await bench.store.setPaused(false, lanes: nil)
        #expect(try await bench.store.release(next) == .some(last: a))
    }
}
