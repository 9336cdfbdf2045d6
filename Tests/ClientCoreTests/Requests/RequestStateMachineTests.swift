internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The state machine of a request, for events in any order.
@Suite struct RequestStateMachineTests {
    private typealias State = RequestStateMachine<Int>
    private struct Failure: Error, Equatable {
        var number = 1
    }

    private var state = State()

    /// Handles events and describes the resulting actions.
    private mutating func after(_ events: State.Event...) -> [String] {
        events.flatMap { state.handle($0) }.map(Self.text)
    }

    private static func text(_ action: State.Action) -> String {
        switch action {
        case .prepare(let attempt): "prepare \(attempt)"
        case .send(let attempt): "send \(attempt)"
        case .pause: "pause"
        case .unpause: "unpause"
        case .stop: "stop"
        case .validate(let attempt): "validate \(attempt)"
        case .askRetrier(let attempt, _): "ask \(attempt)"
        case .wait(let attempt, _): "wait \(attempt)"
        case .offer(let attempt, let error): "offer \(attempt) \((error as? Failure)?.number ?? 0)"
        case .withdraw(let interruption): "withdraw \(interruption)"
        case .finish(.completed): "completed"
        case .finish(.failed(let error)): "failed \((error as? Failure)?.number ?? 0)"
        case .finish(.interrupted(let interruption, _)): "\(interruption)"
        case .run(let handler): "run \(handler)"
        }
    }

    @Test mutating func `a successful request is prepared, sent, validated and finished`() {
        #expect(after(.added(1), .resumed) == ["prepare 1"])
        #expect(after(.prepared(attempt: 1, failure: nil)) == ["send 1"])
        #expect(after(.ended(attempt: 1, failure: nil)) == ["validate 1"])
        #expect(after(.added(2)) == [])
        #expect(after(.validated(attempt: 1, failure: nil)) == ["completed", "run 1", "run 2"])
        #expect(after(.added(3)) == ["run 3"])
    }

    @Test mutating func `nothing happens before the request is resumed`() {
        #expect(after(.suspended, .added(1)) == [])
        #expect(after(.interrupted(.cancelled)) == ["cancelled", "run 1"])
        #expect(after(.resumed) == [])
    }

    @Test(arguments: [0, 1, 2]) mutating func `the retrier is called for every kind of failure`(kind: Int) {
        _ = after(.resumed)
        var asked: [String]
        if kind == 0 {
            asked = after(.prepared(attempt: 1, failure: Failure()))
        } else {
            _ = after(.prepared(attempt: 1, failure: nil))
            asked = after(.ended(attempt: 1, failure: kind == 1 ? Failure() : nil))
        }
        if kind == 2 { asked = after(.validated(attempt: 1, failure: Failure())) }
        #expect(asked == ["ask 1"])
        #expect(after(.decided(attempt: 1, .retry(after: .seconds(1)))) == ["wait 1"])
        #expect(after(.waited(attempt: 1)) == ["prepare 2"])
        // Events that were already handled, or that belong to an earlier attempt, are ignored.
        #expect(after(.waited(attempt: 1), .decided(attempt: 1, .giveUp(nil))) == [])
        #expect(after(.ended(attempt: 1, failure: nil)) == [])
    }

    @Test mutating func `a retry that cannot be prepared is not retried again`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()))
        _ = after(.decided(attempt: 1, .retry(after: .zero)))
        #expect(after(.prepared(attempt: 2, failure: Failure(number: 2))) == ["offer 2 2"])
        #expect(after(.declined(attempt: 2)) == ["failed 2"])
    }

    @Test mutating func `a retry without a delay does not wait`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()))
        #expect(after(.decided(attempt: 1, .retry(after: .zero))) == ["prepare 2"])
    }

    @Test mutating func `giving up keeps the failure or replaces it with the retrier's error`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()))
        var other = self
        #expect(after(.decided(attempt: 1, .giveUp(nil))) == ["offer 1 1"])
        #expect(after(.declined(attempt: 1)) == ["failed 1"])
        #expect(other.after(.decided(attempt: 1, .giveUp(Failure(number: 2)))) == ["offer 1 2"])
        #expect(other.after(.declined(attempt: 1)) == ["failed 2"])
    }

    /// Brings the state machine to the point where the failed request is offered to an owner.
    private mutating func handOver() {
        _ = after(.added(1), .resumed, .prepared(attempt: 1, failure: Failure()))
        _ = after(.decided(attempt: 1, .giveUp(nil)))
    }

    @Test mutating func `a failure is offered to owners after retriers and before handlers`() {
        handOver()
        var other = self
        #expect(after(.answered(attempt: 1, failure: nil)) == ["completed", "run 1"])
        #expect(other.after(.answered(attempt: 1, failure: Failure(number: 3))) == ["failed 3", "run 1"])
        #expect(after(.answered(attempt: 1, failure: nil), .declined(attempt: 1)) == [])
        #expect(after(.added(2)) == ["run 2"])
    }

    @Test mutating func `a request that an owner retains is neither paused nor sent`() {
        handOver()
        #expect(after(.suspended, .resumed, .suspended, .amended(.credential), .amended(.validator)) == [])
        #expect(after(.waited(attempt: 1), .decided(attempt: 1, .retry(after: .zero))) == [])
        #expect(after(.answered(attempt: 0, failure: nil)) == [])
        #expect(after(.answered(attempt: 1, failure: nil)) == ["completed", "run 1"])
    }

    @Test(arguments: [State.Interruption.cancelled, .sessionDropped, .refused])
    mutating func `an owner is notified of the request's end before the handlers are called`(
        interruption: RequestStateMachine<Int>.Interruption
    ) {
        handOver()
        let expected = ["withdraw \(interruption)", "\(interruption)", "run 1"]
        #expect(after(.interrupted(interruption)) == expected)
        #expect(after(.answered(attempt: 1, failure: nil), .declined(attempt: 1)) == [])
    }

    @Test mutating func `an owner's answer is final`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()), .decided(attempt: 1, .giveUp(nil)))
        var other = self
        #expect(after(.answered(attempt: 1, failure: nil)) == ["completed"])
        #expect(other.after(.answered(attempt: 1, failure: Failure())) == ["failed 1"])
        let late: [State.Event] = [.amended(.validator), .amended(.credential), .amended(.owner)]
        #expect(late.flatMap { after($0) } == [])
        #expect(late.flatMap { other.after($0) } == [])
    }

    @Test mutating func `an owner set late is offered the failure until a handler has run`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()), .decided(attempt: 1, .giveUp(nil)))
        #expect(after(.amended(.owner)) == [])
        #expect(after(.declined(attempt: 1)) == ["failed 1"])
        #expect(after(.amended(.owner)) == ["offer 1 1"])
        #expect(after(.declined(attempt: 1), .added(1)) == ["failed 1", "run 1"])
        #expect(after(.amended(.owner)) == [])
    }

    @Test mutating func `cancelling a transfer stops it, and its end ends the request`() {
        _ = after(.added(1), .resumed, .prepared(attempt: 1, failure: nil))
        #expect(after(.interrupted(.cancelled)) == ["stop"])
        #expect(after(.interrupted(.sessionDropped)) == [])
        #expect(after(.ended(attempt: 1, failure: Failure())) == ["cancelled", "run 1"])
    }

    @Test mutating func `a request cancelled during the retry decision ends immediately`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()))
        #expect(after(.interrupted(.cancelled)) == ["cancelled"])
        #expect(after(.decided(attempt: 1, .retry(after: .zero))) == [])
    }

    @Test mutating func `a request cancelled during its retry delay ends immediately`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: Failure()))
        _ = after(.decided(attempt: 1, .retry(after: .seconds(9))))
        #expect(after(.interrupted(.sessionDropped)) == ["sessionDropped"])
        #expect(after(.waited(attempt: 1)) == [])
    }

    @Test mutating func `a suspended request sends nothing new`() {
        _ = after(.resumed)
        #expect(after(.suspended, .prepared(attempt: 1, failure: nil)) == [])
        #expect(after(.resumed) == ["send 1"])
        #expect(after(.suspended) == ["pause"])
        #expect(after(.resumed) == ["unpause"])
        _ = after(.suspended, .ended(attempt: 1, failure: Failure()))
        #expect(after(.decided(attempt: 1, .retry(after: .zero))) == [])
        #expect(after(.resumed) == ["prepare 2"])
    }

    @Test mutating func `cancelling a request that is held by a suspension stops no transfer`() {
        _ = after(.resumed, .suspended, .prepared(attempt: 1, failure: nil))
        #expect(after(.interrupted(.cancelled)) == ["cancelled"])
    }

    @Test mutating func `a validator added after the end counts until a handler has run`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: nil), .ended(attempt: 1, failure: nil))
        #expect(after(.amended(.validator)) == [])
        #expect(after(.validated(attempt: 1, failure: nil)) == ["completed"])
        #expect(after(.amended(.validator)) == ["validate 1"])
        #expect(after(.validated(attempt: 1, failure: Failure())) == ["ask 1"])
        _ = after(.decided(attempt: 1, .giveUp(nil)))
        #expect(after(.declined(attempt: 1), .added(1)) == ["failed 1", "run 1"])
        #expect(after(.amended(.validator), .amended(.credential)) == [])
    }

    @Test
    mutating func `a credential set after a failure sends the request again, and a validator does not`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: nil), .ended(attempt: 1, failure: nil))
        _ = after(.validated(attempt: 1, failure: Failure()), .decided(attempt: 1, .giveUp(nil)))
        _ = after(.declined(attempt: 1))
        #expect(after(.amended(.validator)) == [])
        #expect(after(.amended(.credential)) == ["prepare 1"])
        _ = after(.interrupted(.cancelled))
        #expect(after(.amended(.credential)) == [])
    }

    @Test mutating func `a credential set after the end sends the request again`() {
        _ = after(.resumed, .prepared(attempt: 1, failure: nil), .ended(attempt: 1, failure: nil))
        _ = after(.validated(attempt: 1, failure: nil))
        #expect(after(.amended(.credential)) == ["prepare 1"])
    }

    @Test(arguments: 0..<200) func `in any order of events, each handler runs once`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        var state = State()
        var told: [Int] = []
        var (added, wasInterrupted, endings) = (0, false, 0)
        // Whether an owner holds the failed request. It must be notified if the request ends without its answer.
        var isOffered = false
        for step in 0..<200 {
            let last = step >= 190
            let event = last ? Self.closing(step, state) : Self.random(&generator, state, &added)
            if case .interrupted = event { wasInterrupted = true }
            switch event {
            case .answered(state.attempt, _), .declined(state.attempt): isOffered = false
            default: break
            }
            for action in state.handle(event) {
                switch action {
                case .offer:
                    #expect(!isOffered && !wasInterrupted)
                    isOffered = true
                case .withdraw:
                    #expect(isOffered && wasInterrupted)
                    isOffered = false
                case .run(let handler):
                    #expect(!isOffered, "handlers wait for the owner's answer")
                    told.append(handler)
                case .send, .prepare: #expect(!wasInterrupted)
                case .finish:
                    #expect(!isOffered)
                    endings += 1
                default: break
                }
            }
        }
        #expect(state.isFinished)
        #expect(told == Array(0..<added), "handlers run in order, each once")
        // A validator or a credential may reopen a finished request before any handler has run.
        #expect(endings >= 1)
    }

    private static func random(
        _ generator: inout SeededGenerator,
        _ state: State,
        _ added: inout Int
    ) -> State.Event {
        let failure = Bool.random(using: &generator) ? Failure() : nil
        let attempt = state.attempt - (Int.random(in: 0..<10, using: &generator) == 0 ? 1 : 0)
        switch Int.random(in: 0..<50, using: &generator) {
        case 0: return .interrupted(.cancelled)
        case 1..<6: return .suspended
        case 6..<14: return .resumed
        case 14..<18: return .prepared(attempt: attempt, failure: failure)
        case 18..<22: return .ended(attempt: attempt, failure: failure)
        case 22..<26: return .validated(attempt: attempt, failure: failure)
        case 26..<30: return .decided(attempt: attempt, .retry(after: failure == nil ? .zero : .seconds(1)))
        case 30..<35: return .waited(attempt: attempt)
        case 35: return .amended(.validator)
        case 36: return .amended(.credential)
        case 37: return .amended(.owner)
        case 38..<41: return .decided(attempt: attempt, .giveUp(failure))
        case 41: return .answered(attempt: attempt, failure: failure)
        case 42: return .declined(attempt: attempt)
        case 43, 44: return .queued(attempt: attempt)
        default:
            defer { added += 1 }
            return .added(added)
        }
    }

    /// Returns the event of one closing step. All closing steps together end any request.
    private static func closing(_ step: Int, _ state: State) -> State.Event {
        switch step % 3 {
        case 0: .interrupted(.sessionDropped)
        case 1: .ended(attempt: state.attempt, failure: nil)
        default: .validated(attempt: state.attempt, failure: nil)
        }
    }
}
