internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

@Suite struct RequestStateTests {
    private typealias State = RequestState<Int>

    private static let failure = TransferFailure(code: 7, phase: .connect, message: "refused")
    private let id = TransferID.forTests

    /// Feeds events and tells which handlers ran, which transfers were cancelled, and the last outcome.
    private func run(_ events: [State.Event]) -> Observed {
        var state = State()
        var observed = Observed()
        for event in events { observed.add(state.handle(event)) }
        observed.isFinished = state.isFinished
        return observed
    }

    private struct Observed {
        var handlers: [Int] = []
        var cancellations = 0
        var outcome: State.Outcome?
        var isFinished = false

        mutating func add(_ actions: [State.Action]) {
            for action in actions {
                switch action {
                case .cancelTransfer: cancellations += 1
                case .run(let handler, let outcome):
                    handlers.append(handler)
                    self.outcome = outcome
                }
            }
        }
    }

    @Test func `handlers run at the end, in their order, each once`() {
        let observed = run([.added(1), .started(id), .added(2), .ended(nil), .ended(nil), .cancelled])
        #expect(observed.handlers == [1, 2])
        #expect(observed.cancellations == 0)
        #expect(observed.outcome?.failure == nil)
    }

    @Test func `what comes after the end changes nothing`() {
        let head = TransferHead(status: 200, version: "HTTP/1.1", headers: [])
        let late: [State.Event] = [
            .head(head), .body([1]), .ended(Self.failure), .cancelled, .sessionDropped,
        ]
        let outcome = run([.started(id), .ended(nil)] + late + [.added(1)]).outcome
        #expect(outcome?.failure == nil)
        #expect(outcome?.head == nil)
        #expect(outcome?.body == [])
    }

    @Test func `a handler added after the end runs at once`() {
        #expect(run([.started(id), .ended(nil), .added(1)]).handlers == [1])
    }

    @Test func `what came before the end is in the outcome, even when it failed`() {
        let head = TransferHead(status: 200, version: "HTTP/1.1", headers: [])
        let events: [State.Event] = [
            .added(1), .started(id), .head(head), .body([1]), .body([2]), .ended(Self.failure), .body([3]),
        ]
        let outcome = run(events).outcome
        #expect(outcome?.head == head)
        #expect(outcome?.body == [1, 2])
        guard case .failed(Self.failure)? = outcome?.failure else {
            Issue.record("not the failure")
            return
        }
    }

    @Test func `cancelling waits for the transfer to tell how far it came`() {
        #expect(run([.added(1), .started(id), .cancelled]).handlers.isEmpty)
        let observed = run([.added(1), .started(id), .cancelled, .cancelled, .ended(Self.failure)])
        #expect(observed.handlers == [1])
        #expect(observed.cancellations == 1)
        guard case .cancelled(Self.failure)? = observed.outcome?.failure else {
            Issue.record("not cancelled")
            return
        }
    }

    @Test func `a request cancelled before it starts is cancelled when it does`() {
        let observed = run([.added(1), .cancelled, .started(id), .ended(Self.failure)])
        #expect(observed.cancellations == 1)
        #expect(observed.handlers == [1])
    }

    @Test func `a transfer that ends before its start was noted counts`() {
        let observed = run([.added(1), .ended(nil), .started(id), .cancelled])
        #expect(observed.handlers == [1])
        #expect(observed.cancellations == 0)
        #expect(observed.outcome?.wasSent == true)
    }

    @Test func `the first interruption names the error`() {
        let observed = run([.added(1), .started(id), .sessionDropped, .cancelled, .ended(Self.failure)])
        guard case .sessionDropped? = observed.outcome?.failure else {
            Issue.record("not dropped")
            return
        }
    }

    @Test func `a refused request has no data and cannot be interrupted`() {
        let observed = run([.refused(Self.failure), .sessionDropped, .added(1)])
        #expect(observed.outcome?.wasSent == false)
        guard case .refused? = observed.outcome?.failure else {
            Issue.record("not refused")
            return
        }
    }

    // MARK: In any order

    /// Says what is wrong with the handlers that ran, given those that were added.
    private func complaint(ran: [Int], added: [Int]) -> String? {
        ran == added ? nil : "added \(added), ran \(ran)"
    }

    @Test(arguments: UInt64(1)...500)
    func `in any order of events each handler runs once`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let head = TransferHead(status: 200, version: "HTTP/1.1", headers: [])
        var events: [State.Event] = [.cancelled, .sessionDropped, .head(head), .body([1]), .cancelled]
        events +=
            Bool.random(using: &random) ? [.started(id), .ended(Self.failure)] : [.refused(Self.failure)]
        events += (0..<4).map { .added($0) }
        events.shuffle(using: &random)
        let added = events.compactMap { if case .added(let handler) = $0 { handler } else { nil } }
        let observed = run(events)
        #expect(observed.isFinished, "seed \(seed)")
        #expect(complaint(ran: observed.handlers, added: added) == nil, "seed \(seed)")
        #expect(observed.cancellations <= 1, "seed \(seed)")
    }

    @Test(arguments: [[1], [1, 1, 2], [2, 1]])
    func `the check above notices handlers that are lost, doubled or swapped`(ran: [Int]) {
        #expect(complaint(ran: ran, added: [1, 2]) != nil)
    }
}

extension TransferID {
    /// The id of a transfer that is refused at once.
    fileprivate static var forTests: TransferID {
        TransferEngine.shared.start(TransferRequest(url: "")) { _ in }
    }
}
