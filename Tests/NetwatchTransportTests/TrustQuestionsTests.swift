internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchTransport

/// The decision which calls of the program's checks are made, and which transfers wait for them.
@Suite struct TrustQuestionsTests {
    private let ids = (0..<8).map { _ in TransferID() }
    private let check = TrustCheck(by: .program) { _ in true }
    private let now = BootInstant.now
    private var questions = TrustQuestions()

    private func question(_ host: String, _ check: TrustCheck? = nil, chain: [UInt8] = [1]) -> TrustQuestion {
        TrustQuestion(check: check ?? self.check, presented: .valid(host, [chain]))
    }

    @Test mutating func `transfers with the same question share a call`() {
        let calls = questions.add(ids[0], question("a"), at: now)
        #expect(calls.map(\.question) == [question("a")])
        #expect(questions.add(ids[1], question("a"), at: now).isEmpty)
        let ended = questions.end(calls[0].number, isAccepted: true, at: now)
        #expect(ended.transfers == [ids[0], ids[1]])
        #expect(ended.next.isEmpty)
    }

    @Test mutating func `another check, host or chain is another question`() {
        let other = TrustCheck(by: .program) { _ in true }
        let asked = [question("a"), question("a", other), question("b"), question("a", chain: [2])]
        let calls = zip(ids, asked).flatMap { questions.add($0, $1, at: now) }
        #expect(calls.map(\.question) == asked)
        #expect(questions.end(calls[2].number, isAccepted: true, at: now).transfers == [ids[2]])
    }

    @Test mutating func `an overdue call is not shared by later transfers`() {
        #expect(questions.add(ids[0], question("a"), at: now).count == 1)
        let late = now + TrustQuestions.timeout
        #expect(questions.add(ids[1], question("a"), at: late - .nanoseconds(1)).isEmpty)
        #expect(questions.add(ids[2], question("a"), at: late).map(\.question) == [question("a")])
    }

    @Test mutating func `the result of an overdue call counts if there is no newer call`() {
        let calls = questions.add(ids[0], question("a"), at: now)
        let ended = questions.end(calls[0].number, isAccepted: true, at: now + TrustQuestions.timeout)
        #expect(ended.transfers == [ids[0]])
        #expect(ended.acceptedAt == now)
    }

    @Test(arguments: [true, false])
    mutating func `the newest call decides for all transfers that wait`(isAccepted: Bool) {
        let first = questions.add(ids[0], question("a"), at: now)
        let late = now + TrustQuestions.timeout
        let second = questions.add(ids[1], question("a"), at: late)
        let decided = questions.end(second[0].number, isAccepted: isAccepted, at: late + .seconds(1))
        #expect(decided.transfers == [ids[0], ids[1]])
        #expect(decided.acceptedAt == (isAccepted ? late : nil))
        let ignored = questions.end(first[0].number, isAccepted: !isAccepted, at: late + .seconds(2))
        #expect(ignored.transfers.isEmpty)
        #expect(ignored.acceptedAt == nil)
    }

    @Test mutating func `the result of an overdue call is ignored while a newer call is in progress`() {
        let first = questions.add(ids[0], question("a"), at: now)
        let late = now + TrustQuestions.timeout
        let second = questions.add(ids[1], question("a"), at: late)
        let ignored = questions.end(first[0].number, isAccepted: true, at: late)
        #expect(ignored.transfers.isEmpty)
        #expect(ignored.acceptedAt == nil)
        let rejected = questions.end(second[0].number, isAccepted: false, at: late)
        #expect(rejected.transfers == [ids[0], ids[1]])
    }

    @Test mutating func `a question beyond the limit of its host waits until a call has returned`() {
        let calls = (0..<4).flatMap { questions.add(ids[$0], question("a", chain: [UInt8($0)]), at: now) }
        #expect(calls.count == TrustQuestions.maximumPerHost)
        #expect(questions.add(ids[4], question("a", chain: [4]), at: now).isEmpty)
        #expect(questions.add(ids[5], question("a", chain: [4]), at: now + TrustQuestions.timeout).isEmpty)
        #expect(questions.add(ids[6], question("b"), at: now).count == 1)
        let next = questions.end(calls[1].number, isAccepted: true, at: now).next
        #expect(next.map(\.question) == [question("a", chain: [4])])
        #expect(questions.end(next[0].number, isAccepted: true, at: now).transfers == [ids[4], ids[5]])
    }

    @Test mutating func `calls are limited per check and in all`() {
        func ask(_ count: Int, _ check: TrustCheck) -> Int {
            (0..<count).count { !questions.add(TransferID(), question("\($0)", check), at: now).isEmpty }
        }
        #expect(ask(100, check) == TrustQuestions.maximumPerCheck)
        #expect(ask(100, TrustCheck(by: .program) { _ in true }) == TrustQuestions.maximumPerCheck)
        #expect(ask(100, TrustCheck(by: .program) { _ in true }) == 0)
    }

    @Test mutating func `a removed transfer gets no answer, and its question is not asked any more`() {
        let calls = (0..<4).flatMap { questions.add(ids[$0], question("a", chain: [UInt8($0)]), at: now) }
        _ = questions.add(ids[4], question("a", chain: [4]), at: now)
        questions.remove(ids[0])
        questions.remove(ids[4])
        let ended = questions.end(calls[0].number, isAccepted: true, at: now)
        #expect(ended.transfers.isEmpty && ended.next.isEmpty)
    }
}

/// The memory of accepted servers.
@Suite struct AcceptedServersTests {
    private let now = BootInstant.now
    private var servers = AcceptedServers()

    @Test mutating func `a server is remembered for its lifetime`() {
        servers.insert(.valid("a", [[1]]), at: now)
        #expect(servers.contains(.valid("a", [[1]]), at: now + AcceptedServers.lifetime - .nanoseconds(1)))
        #expect(!servers.contains(.valid("a", [[1]]), at: now + AcceptedServers.lifetime))
    }

    @Test mutating func `another host, chain or verdict is another server`() {
        servers.insert(.valid("a", [[1], [2]]), at: now)
        #expect(!servers.contains(.valid("b", [[1], [2]]), at: now))
        #expect(!servers.contains(.valid("a", [[1]]), at: now))
        #expect(!servers.contains(.valid("a", [[2], [1]]), at: now))
        let expired = TrustVerdict(code: 10, depth: 0, message: "certificate has expired")
        let server = PresentedTrust(host: "a", chain: [[1], [2]], verdict: expired)
        #expect(!servers.contains(server, at: now))
    }

    @Test mutating func `the oldest server is forgotten first`() {
        for index in 0...AcceptedServers.capacity {
            servers.insert(.valid("\(index)", [[1]]), at: now + .seconds(index))
        }
        let end = now + .seconds(AcceptedServers.capacity)
        #expect(!servers.contains(.valid("0", [[1]]), at: end))
        let others = (1...AcceptedServers.capacity).map { PresentedTrust.valid("\($0)", [[1]]) }
        #expect(others.allSatisfy { servers.contains($0, at: end) })
    }
}

extension PresentedTrust {
    fileprivate static func valid(_ host: String, _ chain: [[UInt8]]) -> PresentedTrust {
        PresentedTrust(host: host, chain: chain, verdict: TrustVerdict(code: 0, depth: 0, message: "ok"))
    }
}
