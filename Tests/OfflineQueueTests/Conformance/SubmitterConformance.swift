internal import Foundation
internal import OfflineQueue
internal import Testing

/// The users who submit requests, and their quotas.
@Suite struct SubmitterConformance {
    private func submitter(_ user: UInt32, requests: Int = 1000) -> Submitter {
        var quota = UserQuota()
        quota.requests = requests
        return Submitter(user: user, quota: quota)
    }

    private func submitter(_ bench: StoreBench, of id: String) async throws -> UInt32? {
        let listed = try await bench.summary(id).submitter
        #expect(try await bench.store.storedStates(of: [id])[id]?.submitter == listed)
        return listed
    }

    @Test(arguments: StoreKind.allCases)
    func `the submitter is known in every state, and its webhooks belong to it`(kind: StoreKind) async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") {
            $0.submitter = submitter(7)
            $0.onDone = Webhook(url: "https://hooks.example/")
        }
        try await bench.put("unknown")
        #expect(try await submitter(bench, of: "a") == 7)
        #expect(try await submitter(bench, of: "unknown") == nil)
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "HTTP 410"))
        #expect(try await submitter(bench, of: "a") == 7)
        let webhook = try #require(try await bench.store.details(of: "a")?.webhookID)
        #expect(try await submitter(bench, of: webhook) == 7)
        #expect(try await bench.store.edit(.retry(newKey: false), ["a"]) == [.done(.pending)])
        try await bench.reopen()
        #expect(try await submitter(bench, of: "a") == 7)
        #expect(try await bench.store.archive.inspect().isSound)
    }

    @Test(arguments: StoreKind.allCases)
    func `lists and edits select the requests of a user, and those without a submitter`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        for (prefix, submitter) in [("7", submitter(7)), ("8", submitter(8)), ("none", nil)] {
            for name in ["waiting", "over"] {
                try await bench.put("\(prefix)-\(name)") { $0.submitter = submitter }
            }
            _ = try await bench.store.edit(.cancel, ["\(prefix)-over"])
        }
        func ids(_ submitter: SelectedSubmitter?) async throws -> Set<String> {
            var query = RequestQuery()
            query.submitter = submitter
            return Set(try await bench.store.page(query).requests.map(\.id))
        }
        #expect(try await ids(.user(7)) == ["7-waiting", "7-over"])
        #expect(try await ids(.process) == ["none-waiting", "none-over"])
        #expect(try await ids(nil).count == 6)
        #expect(try await ids(.user(9)).isEmpty)
        var filter = RequestFilter()
        filter.submitter = .process
        #expect(try await bench.store.edit(.hold, matching: filter, isDryRun: false).result.done == 1)
        #expect(try await bench.summary("none-waiting").state == .held)
        #expect(try await bench.summary("7-waiting").state == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `the quota counts the unfinished requests of one user, however they end`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let user = submitter(7, requests: 1)
        func put(_ id: String) async throws -> Int64 { try await bench.put(id) { $0.submitter = user } }
        let lane = try await put("a")
        for other in [nil, submitter(8, requests: 1), Submitter(user: 7)] {
            try await bench.put("\(other?.user ?? 0)-\(other?.quota?.requests ?? 0)") { $0.submitter = other }
        }
        let error = try await #require(throws: QueueError.self) { _ = try await put("b") }
        #expect(error.code == .quotaExceeded && error.message == "the user 7 has 2 requests; its limit is 1")
        _ = try await bench.store.edit(.cancel, ["7-0"])
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        _ = try await put("b")
        #expect(
            try await bench.store.edit(.cancel, matching: RequestFilter(), isDryRun: false).result.done > 0
        )
        _ = try await put("c")
        #expect(try await bench.store.archive.inspect().isSound)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request that was dropped for the quota of its user says so`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        for id in ["a", "b"] {
            try await bench.put(id) {
                $0.submitter = submitter(7, requests: 1)
                $0.whenFull = .dropOldest
            }
        }
        #expect(try await bench.summary("a").lastError == "dropped: the quota of the user 7 was reached")
    }

    @Test(arguments: StoreKind.allCases)
    func `a quota below what a user has drops no more than a new request needs`(kind: StoreKind) async throws
    {
        let bench = try await kind.bench()
        func put(_ id: String, _ quota: UserQuota?, _ policy: FullQueuePolicy) async throws {
            try await bench.put(id) {
                $0.submitter = Submitter(user: 7, quota: quota)
                $0.whenFull = policy
            }
        }
        for id in ["a", "b", "c", "d"] { try await put(id, nil, .reject) }
        var quota = UserQuota()
        quota.requests = 2
        let refused = await #expect(throws: QueueError.self) { try await put("e", quota, .reject) }
        #expect(refused?.message == "the user 7 has 4 requests; its limit is 2")
        try await put("f", quota, .dropOldest)
        #expect(
            try await bench.store.states() == [
                "a": .dead, "b": .pending, "c": .pending, "d": .pending, "f": .pending,
            ]
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a retry of dead requests is refused beyond the quota of their submitter`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        var quota = UserQuota()
        quota.requests = 1
        for id in ["a", "b"] {
            let lane = try await bench.put(id) { $0.submitter = submitter(7, requests: 1) }
            try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        }
        let retry = QueueEdit.retry(newKey: false, quota: quota)
        let error = try await #require(throws: QueueError.self) {
            _ = try await bench.store.edit(retry, ["a", "b"])
        }
        #expect(error.code == .quotaExceeded && error.message == "the user 7 has 1 requests; its limit is 1")
        #expect(try await bench.waiting().isEmpty)
        let dead = RequestFilter(states: [.dead])
        let filtered = try await bench.store.edit(retry, matching: dead, isDryRun: false)
        #expect(filtered.result.done == 1 && filtered.result.refused == 1)
        #expect(filtered.result.refusal == error)
        #expect(try await bench.waiting() == ["a": .pending])
        // Without a quota, the limit of the user does not apply.
        #expect(try await bench.store.edit(.retry(newKey: false), ["b"]) == [.done(.pending)])
        // The retry of a request that is not finished adds no request.
        #expect(try await bench.store.edit(retry, ["a", "b"]) == [.done(.pending), .done(.pending)])
        quota.requests = 10
        quota.bytes = 1
        _ = try await bench.store.edit(.cancel, ["b"])
        let lane = try await bench.put("c") { $0.submitter = submitter(8) }
        _ = try await bench.store.edit(.cancel, ["a"])
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        await #expect(throws: QueueError.self) {
            _ = try await bench.store.edit(.retry(newKey: false, quota: quota), ["c"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a request of another user is neither repeated, replaced nor dropped`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 2
            $0.limits.laneShare = 1
        }
        func put(_ id: String, _ submitter: Submitter?, whenFull: FullQueuePolicy = .reject) async throws {
            try await bench.put(id) {
                $0.submitter = submitter
                $0.replaceKey = "k"
                $0.whenFull = whenFull
            }
        }
        try await put("a", submitter(7))
        let conflict = "the id `a` already belongs to a request of the user 7; choose another id"
        let refusals: [(Submitter?, QueueError.Code, String)] = [
            (submitter(8), .notSubmitter, "`a` belongs to another user"),
            // Also with full access, and within the process: the user may have cancelled the request.
            (Submitter(user: 9), .idConflict, conflict), (nil, .idConflict, conflict),
        ]
        for (submitter, code, message) in refusals {
            let error = try await #require(throws: QueueError.self) { try await put("a", submitter) }
            #expect(error.code == code && error.message == message)
        }
        try await put("c", submitter(8))
        #expect(try await bench.state("a") == .pending, "it has the same replace key")
        try await bench.put("d") {
            $0.submitter = submitter(8)
            $0.whenFull = .dropOldest
        }
        #expect(try await bench.store.states() == ["a": .pending, "c": .dead, "d": .pending])
        // Without a quota, a user may drop all.
        try await bench.put("e") {
            $0.submitter = Submitter(user: 9)
            $0.whenFull = .dropOldest
        }
        #expect(try await bench.state("a") == .dead)
    }

    @Test(arguments: StoreKind.allCases)
    func `a user with full access can repeat a request without a submitter`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("a")
        let repeated = try await bench.store.enqueue(try new("a") { $0.submitter = Submitter(user: 0) })
        #expect(repeated.map(\.outcome) == [.known])
    }

    // MARK: Lanes

    @Test(arguments: StoreKind.allCases, [nil, "l"])
    func `users do not share lanes, with and without a label`(kind: StoreKind, label: String?) async throws {
        let bench = try await kind.bench()
        func put(_ id: String, _ user: UInt32?, notBefore: Date? = nil) async throws -> Int64 {
            try await bench.put(id, isFIFO: true) {
                $0.submitter = user.map { submitter($0) }
                $0.lane = label
                $0.notBefore = notBefore
            }
        }
        // The head of the FIFO lane of the user 7 must wait.
        let seven = try await put("a", 7, notBefore: start.date.addingTimeInterval(300))
        let (own, eight) = (try await put("b", nil), try await put("c", 8))
        let again = try await put("d", 7)
        #expect(again == seven && Set([seven, own, eight]).count == 3)
        #expect(try await bench.take(seven).isEmpty)
        #expect(try await bench.take(own).map(\.id) == ["b"])
        let sent = try await bench.takeOne(eight)
        // A closure concerns only the user whose attempt has caused it.
        let retry = Verdict.retry(countsAsAttempt: true)
        try await bench.store.conclude(sent, retry, status: 429, laneClosure: .seconds(600))
        #expect(try await bench.store.statistics().closedLanes.map(\.submitter) == [8])
        bench.clock.advance(.seconds(300))
        let lanes = try await bench.reopen()
        #expect(Set(lanes.map(\.key.submitter)) == [nil, 7, 8])
        #expect(try await bench.take(seven).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a retry returns a dead request to the lane of its submitter`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") { $0.submitter = submitter(7) }
        let other = try await bench.put("b") { $0.submitter = submitter(8) }
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        _ = try await bench.store.edit(.retry(newKey: false), ["a"])
        #expect(try await bench.take(other).map(\.id) == ["b"])
        #expect(try await bench.take(lane).map(\.id) == ["a"])
        #expect(try await bench.store.archive.inspect().isSound)
    }

    @Test(arguments: StoreKind.allCases)
    func `a pause of a user's lanes does not concern others, and one of all lanes also concerns new users`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        func put(_ id: String, _ user: UInt32?) async throws -> Int64 {
            try await bench.put(id) {
                $0.submitter = user.map { submitter($0) }
                $0.lane = "l"
            }
        }
        func setPaused(_ isPaused: Bool, _ selection: LaneSelection?) async throws -> Int {
            try await bench.store.setPaused(isPaused, lanes: selection)
        }
        let (seven, eight) = (try await put("a", 7), try await put("b", 8))
        #expect(try await setPaused(true, LaneSelection(label: "l", submitter: 7)) == 1)
        let nine = try await put("c", 9)
        #expect(try await bench.take(seven).isEmpty)
        #expect(try await bench.take(eight).map(\.id) == ["b"])
        #expect(try await bench.take(nine).map(\.id) == ["c"])
        #expect(try await bench.store.pauses(in: .all).lanes.map(\.submitter) == [7])
        #expect(try await setPaused(true, LaneSelection(label: "l")) == 3)
        let own = try await put("d", nil)
        #expect(try await bench.take(own).isEmpty)
        #expect(try await bench.store.statistics().pausedLanes.map(\.submitter) == [nil, 7, 8, 9])
        #expect(try await setPaused(false, LaneSelection(submitter: 7)) == 1)
        #expect(try await bench.take(seven).map(\.id) == ["a"])
        // The pause of the whole queue ends all others, and applies to no lane that is new afterwards.
        _ = try await setPaused(false, nil)
        #expect(try await bench.take(own).map(\.id) == ["d"])
        #expect(try await bench.take(try await put("e", 10)).map(\.id) == ["e"])
        _ = try await bench.store.reopen(LaneSelection(submitter: 10), releasing: [])
        let selected = LaneSelection(submitter: 10)
        let flushed = try await bench.store.busyLanes(in: selected, after: 0, limit: 10)
        #expect(flushed.map(\.due) == [nil], "the only request is in flight")
        let error = try await #require(throws: QueueError.self) {
            _ = try await bench.store.reopen(LaneSelection(label: "l", submitter: 11), releasing: [])
        }
        #expect(error.message == "the queue has no lane with the label `l` of the user 11")
    }
}
