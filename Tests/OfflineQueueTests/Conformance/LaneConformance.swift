internal import Foundation
internal import OfflineQueue
internal import Testing

/// Pauses of lanes, and notifications about changed lanes.
@Suite struct LaneConformance {
    @Test(arguments: StoreKind.allCases)
    func `no request of a paused queue is claimed, even after a restart`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        #expect(try await bench.store.setPaused(true, lanes: nil) == 1)
        let late = try await bench.store.enqueue(try new("b", host: "other"))[0]
        #expect(late.lane.isPaused && late.lane.due == nil)
        #expect(try await bench.take(lane).isEmpty)
        #expect(try await bench.reopen().isEmpty)
        #expect(try await bench.store.statistics().isPaused)
        #expect(try await bench.take(late.lane.id).isEmpty)
        _ = try await bench.store.setPaused(false, lanes: nil)
        #expect(try await bench.take(lane).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a paused lane releases held requests, and sends them when it is resumed`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        try await bench.store.conclude(try await bench.takeOne(lane), .held(.trust))
        _ = try await bench.store.setPaused(true, lanes: LaneSelection(host: "example.com"))
        #expect(try await bench.store.claim(8, of: lane, releasing: [.trust]).requests.isEmpty)
        _ = try await bench.store.setPaused(false, lanes: LaneSelection(host: "example.com"))
        #expect(try await bench.take(lane).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `lanes with unfinished requests are read in pages, and any lane by its id`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        var ids: [Int64] = []
        for host in ["a", "b", "c", "d"] { ids.append(try await bench.put(host, host: host)) }
        let other = try await bench.put("e", host: "a") { $0.lane = "l" }
        let sent = try await bench.takeOne(ids[1])
        try await bench.store.conclude(sent, .delivered(status: 200))
        _ = try await bench.takeOne(ids[2])
        func page(_ selection: LaneSelection = .all, after last: Int64) async throws -> [LaneRecord] {
            try await bench.store.busyLanes(in: selection, after: last, limit: 2)
        }
        let first = try await page(after: 0)
        #expect(first.map(\.id) == [ids[0], ids[2]] && first.map { $0.due == nil } == [false, true])
        #expect(try await page(after: ids[2]).map(\.id) == [ids[3], other])
        #expect(try await page(after: other).isEmpty)
        #expect(try await page(LaneSelection(host: "a", label: "l"), after: 0).map(\.id) == [other])
        let known = try await bench.store.lanes([other, ids[1], other + 1])
        #expect(known.map(\.id) == [other, ids[1]] && known[1].due == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `lanes are paused by host and by label`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let plain = try await bench.put("plain")
        let labelled = try await bench.put("labelled") { $0.lane = "l" }
        let other = try await bench.put("other", host: "other")
        func taken() async throws -> [String] {
            var ids: [String] = []
            for lane in [plain, labelled, other] {
                for request in try await bench.take(lane) {
                    ids.append(request.id)
                    try await bench.store.conclude(request, .retry(countsAsAttempt: true))
                }
            }
            return ids
        }
        #expect(try await bench.store.setPaused(true, lanes: LaneSelection(host: "example.com")) == 2)
        #expect(try await taken() == ["other"])
        #expect(
            try await bench.store.setPaused(false, lanes: LaneSelection(host: "example.com", label: "")) == 1
        )
        #expect(try await taken() == ["plain", "other"])
        #expect(try await bench.store.setPaused(false, lanes: LaneSelection(label: "l")) == 1)
        #expect(try await taken() == ["plain", "labelled", "other"])
        #expect(try await bench.store.setPaused(true, lanes: LaneSelection(host: "unknown")) == 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `the statistics list paused lanes, and resuming the queue resumes all of them`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let store = bench.store
        let labelled = try await bench.put("labelled") { $0.lane = "l" }
        try await bench.put("plain")
        let ordered = try await bench.put("ordered", host: "b", isFIFO: true)
        try await bench.put("parallel", host: "b")
        #expect(try await store.statistics().pausedLanes.isEmpty)
        _ = try await store.setPaused(true, lanes: LaneSelection(label: "l"))
        _ = try await store.setPaused(true, lanes: LaneSelection(host: "b"))
        let paused = try await store.statistics()
        #expect(paused.pausedLanes.map { [$0.host, $0.label] } == [["b", ""], ["example.com", "l"]])
        #expect(!paused.isPaused)
        _ = try await store.setPaused(true, lanes: nil)
        #expect(try await store.statistics().pausedLanes == paused.pausedLanes)
        _ = await store.changes.next()
        #expect(try await store.setPaused(false, lanes: nil) == 4)
        #expect(await store.changes.next().filter { $0.due == .zero }.count == 4)
        let resumed = try await store.statistics()
        #expect(!resumed.isPaused && resumed.pausedLanes.isEmpty)
        #expect(try await bench.take(labelled).map(\.id) == ["labelled"])
        #expect(try await bench.take(ordered).map(\.id) == ["ordered"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the pauses of selected lanes are known, even if more lanes are paused than a list contains`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        let limit = QueueStatistics.maximumPausedLanes
        let requests = try (0...limit).map { number in try new(host: "a") { $0.lane = "\(number)" } }
        _ = try await bench.store.enqueue(requests + [try new(host: "b")])
        _ = try await bench.store.setPaused(true, lanes: LaneSelection(host: "a"))
        #expect(try await bench.store.pauses(in: LaneSelection(host: "b")).lanes.isEmpty)
        _ = try await bench.store.setPaused(true, lanes: LaneSelection(host: "b"))
        let pauses = try await bench.store.pauses(in: LaneSelection(host: "b"))
        #expect(!pauses.isQueuePaused && pauses.lanes.map(\.host) == ["b"])
        #expect(try await bench.store.pauses(in: .all).lanes.count == limit)
        _ = try await bench.store.setPaused(true, lanes: nil)
        #expect(try await bench.store.pauses(in: .all).isQueuePaused)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request in flight returns to its paused lane`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let sent = try await bench.takeOne(lane)
        _ = try await bench.store.setPaused(true, lanes: nil)
        #expect(try await bench.store.conclude(sent, .retry(countsAsAttempt: true)))
        #expect(try await bench.state("a") == .pending)
        #expect(try await bench.take(lane).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `changes are merged per lane, with the newest state and the earliest due time`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") { $0.notBefore = start.date.addingTimeInterval(300) }
        try await bench.put("b") { $0.notBefore = start.date.addingTimeInterval(100) }
        try await bench.put("c") { $0.notBefore = start.date.addingTimeInterval(200) }
        let other = try await bench.put("d", host: "other")
        let changes = await bench.store.changes.next()
        #expect(changes.map(\.id) == [lane, other])
        #expect(changes.map(\.due) == [.seconds(100), .zero])
        try await bench.put("e")
        #expect(await bench.store.changes.next().map(\.id) == [lane])
    }

    @Test(arguments: ["released", "retried", "unblocked", "resumed", "expired", "cancelled head"])
    func `a change that unblocks a lane is reported`(how: String) async throws {
        for kind in StoreKind.allCases {
            let bench = try await kind.bench()
            let store = bench.store
            let lane = try await bench.put("a", host: "a", isFIFO: true) { $0.timeToLive = .seconds(60) }
            try await bench.put("b", host: "a", isFIFO: true)
            switch how {
            case "released":
                _ = try await store.edit(.hold, ["a"])
                _ = await store.changes.next()
                _ = try await store.edit(.release, ["a"])
            case "retried":
                try await store.conclude(try await bench.takeOne(lane), .dead(reason: ""))
                _ = await store.changes.next()
                _ = try await store.edit(.retry(newKey: false), ["a"])
            case "unblocked":
                let blocked = try await bench.put("c", host: "c") { $0.dependencies = ["a"] }
                let request = try await bench.takeOne(lane)
                _ = await store.changes.next()
                try await store.conclude(request, .delivered(status: 200))
                #expect(await store.changes.next().contains { $0.id == blocked && $0.due == .zero })
                continue
            case "resumed":
                _ = try await store.setPaused(true, lanes: nil)
                #expect(await store.changes.next().allSatisfy { $0.isPaused && $0.due == nil })
                _ = try await store.setPaused(false, lanes: nil)
            case "expired":
                _ = try await store.edit(.hold, ["a"])
                _ = await store.changes.next()
                bench.clock.advance(.seconds(60))
                _ = try await store.expire()
            default:
                _ = try await store.edit(.hold, ["a"])
                _ = await store.changes.next()
                _ = try await store.edit(.cancel, ["a"])
            }
            #expect(await store.changes.next().contains { $0.id == lane && $0.due == .zero })
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a release is reported with the lane, until the lane's record is read`(
        kind: StoreKind,
        isFiltered: Bool
    )
        async throws
    {
        let bench = try await kind.bench()
        let store = bench.store
        try await bench.put("a")
        _ = try await store.edit(.hold, ["a"])
        #expect(await store.changes.next().map(\.wasReleased) == [false])
        if isFiltered {
            let held = RequestFilter(states: [.held])
            _ = try await store.edit(.release, matching: held, isDryRun: false)
        } else {
            _ = try await store.edit(.release, ["a"])
        }
        // A later change of the lane does not hide the release.
        try await bench.put("b")
        #expect(await store.changes.next().map(\.wasReleased) == [true])
        try await bench.put("c")
        #expect(await store.changes.next().map(\.wasReleased) == [false])
    }

    @Test(arguments: [Verdict.delivered(status: 200), .dead(reason: ""), .retry(countsAsAttempt: false)])
    func `a lane whose last request finished is reported`(verdict: Verdict) async throws {
        for kind in StoreKind.allCases {
            let bench = try await kind.bench()
            let lane = try await bench.put("a")
            try await bench.put("b")
            let requests = try await bench.take(lane, 2)
            // A request that was cancelled in flight ends with its attempt, instead of being retried.
            if case .retry = verdict { _ = try await bench.store.edit(.cancel, ["a", "b"]) }
            _ = await bench.store.changes.next()
            try await bench.store.conclude(requests[0], verdict)
            try await bench.put("other", host: "other")
            #expect(await bench.store.changes.next().allSatisfy { !$0.wasEmpty })
            try await bench.store.conclude(requests[1], verdict)
            #expect(await bench.store.changes.next().filter(\.wasEmpty).map(\.id) == [lane])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the stream of changes ends when the store closes`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        await bench.store.close()
        #expect(await bench.store.changes.next().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a call to a closed store throws instead of hanging`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let store = bench.store
        await store.close()
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await store.enqueue(try new()) }, { _ = try await store.counts() },
            { _ = try await store.claim(of: 1) }, { _ = try await store.edit(.hold, ["a"]) },
            { _ = try await store.expire() }, { _ = try await store.page(RequestQuery()) },
        ]
        for call in calls {
            let error = try await #require(throws: QueueError.self) { try await call() }
            #expect(error.code == .stopped)
        }
    }
}
