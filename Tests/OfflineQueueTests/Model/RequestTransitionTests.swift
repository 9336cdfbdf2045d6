internal import OfflineQueue
internal import Testing

/// The transition table of a request: the result of every event in every phase.
@Suite struct RequestTransitionTests {
    /// A row for each phase and a column for each event. A cell contains the next phase, or `-` if the event is
    /// refused.
    private static let table = """
        phase           accept  waits   claim    replace    giveUp cancel     hold       release  trust    retry   unblock lost       sealed
        staging         pending blocked -        -          -      -          -          -        -        -       -       -          -
        blocked         -       -       -        superseded dead   cancelled  user       -        -        pending pending dependency -
        pending         -       -       inflight superseded dead   cancelled  user       -        -        pending -       -          key
        inflight        -       -       -        -          -      to-cancel  to-hold    -        -        -       -       -          -
        to-cancel       -       -       -        -          -      to-cancel  to-cancel  -        -        -       -       -          -
        to-hold         -       -       -        -          -      to-cancel  to-hold    inflight -        -       -       -          -
        user            -       -       -        superseded dead   cancelled  user       pending  -        pending -       dependency -
        dependency      -       -       -        superseded dead   cancelled  dependency pending  -        pending -       dependency -
        trust           -       -       -        superseded dead   cancelled  user       pending  pending  pending -       dependency -
        configuration   -       -       -        superseded dead   cancelled  user       pending  -        pending -       dependency -
        auth            -       -       -        superseded dead   cancelled  user       pending  -        pending -       dependency -
        key             -       -       -        superseded dead   cancelled  user       pending  -        pending -       dependency -
        ambiguous       -       -       -        superseded dead   cancelled  ambiguous  pending  -        pending -       dependency -
        delivered       -       -       -        -          -      -          -          -        -        -       -       -          -
        dead            -       -       -        -          -      cancelled  -          -        -        pending -       -          -
        cancelled       -       -       -        -          -      -          -          -        -        -       -       -          -
        superseded      -       -       -        -          -      -          -          -        -        -       -       -          -
        """

    /// The same for the ends of attempts, reported with the current lease. Phases that are not in the table refuse
    /// them.
    private static let ends = """
        phase           delivered dead kept      deferred  auth      ambiguous abandoned unsure
        inflight        delivered dead pending   pending   auth      ambiguous pending   ambiguous
        to-cancel       delivered dead cancelled cancelled cancelled cancelled cancelled cancelled
        to-hold         delivered dead user      user      user      ambiguous user      ambiguous
        """

    private static let due = start + .seconds(9)
    private static let lease = Lease(token: "mine", ownerEpoch: 1)

    private static let phases: [String: RequestLifecycle.Phase] = {
        var phases: [String: RequestLifecycle.Phase] = [
            "staging": .staging, "blocked": .blocked, "pending": .pending(due: due),
            "inflight": .inflight(lease, pendingEdit: nil),
            "to-cancel": .inflight(lease, pendingEdit: .cancel),
            "to-hold": .inflight(lease, pendingEdit: .hold), "delivered": .finished(.delivered(status: 200)),
            "dead": .finished(.dead(reason: "why")), "cancelled": .finished(.cancelled),
            "superseded": .finished(.superseded),
        ]
        for reason in HoldReason.allCases { phases[reason.rawValue] = .held(reason) }
        return phases
    }()

    private static let events: [String: RequestLifecycle.Event] = [
        "accept": .accepted(due: due, isBlocked: false), "waits": .accepted(due: due, isBlocked: true),
        "claim": .claimed(lease), "replace": .replaced, "giveUp": .givenUp(.refused, reason: "why"),
        "cancel": .cancelled, "hold": .held,
        "release": .released(Set(HoldReason.allCases), now: due, isBlocked: false),
        "trust": .released([.trust], now: due, isBlocked: false), "retry": .requeued(now: due),
        "unblock": .unblocked(now: due), "lost": .dependencyFailed, "sealed": .unusable(.key),
        "delivered": .concluded(token: "mine", .delivered(status: 200), due: start),
        "dead": .concluded(token: "mine", .dead(reason: "why"), due: start),
        "kept": .concluded(token: "mine", .retry(countsAsAttempt: true), due: due),
        "deferred": .concluded(token: "mine", .retry(countsAsAttempt: false), due: due),
        "auth": .concluded(token: "mine", .held(.auth), due: start),
        "ambiguous": .concluded(token: "mine", .held(.ambiguous), due: start),
        "abandoned": .abandoned(token: "mine", now: due), "unsure": .abandoned(token: "mine", now: due),
    ]

    struct Cell: Sendable, CustomTestStringConvertible {
        let phase: String
        let event: String
        let outcome: String

        var testDescription: String { "\(event) in \(phase)" }
    }

    private static func cells(_ table: String) -> [Cell] {
        let rows = table.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        return rows.dropFirst().flatMap { row in
            zip(rows[0], row).dropFirst().map { Cell(phase: row[0], event: $0, outcome: $1) }
        }
    }

    /// The cells of both tables, and a refusal for each combination that is in neither.
    private static let allCells: [Cell] = {
        let written = cells(table) + cells(ends)
        let rest = phases.keys.sorted().flatMap { phase in
            events.keys.sorted().compactMap { event in
                written.contains { $0.phase == phase && $0.event == event }
                    ? nil : Cell(phase: phase, event: event, outcome: "-")
            }
        }
        return written + rest
    }()

    private func state(_ cell: Cell) -> RequestLifecycle {
        let rules = RequestRules(mayBeSentTwice: cell.event != "unsure")
        return RequestLifecycle(phase: Self.phases[cell.phase]!, attempts: 3, deferrals: 1, rules: rules)
    }

    @Test func `every phase and every event is in the table`() {
        #expect(Self.allCells.count == Self.phases.count * Self.events.count)
        #expect(Set(Self.cells(Self.table).map(\.phase)) == Set(Self.phases.keys))
    }

    @Test(arguments: allCells)
    func `each event leads to the state in the table`(cell: Cell) throws {
        var state = state(cell)
        let before = state
        let event = try #require(Self.events[cell.event])
        guard cell.outcome != "-" else {
            #expect(throws: RequestLifecycle.Refusal.self) { try state.apply(event) }
            #expect(state == before)
            return
        }
        try state.apply(event)
        #expect(state.phase == Self.phases[cell.outcome])
    }

    @Test(arguments: ["inflight", "to-cancel", "to-hold"])
    func `a stale lease changes no request`(phase: String) {
        var state = RequestLifecycle(phase: Self.phases[phase]!, rules: RequestRules(mayBeSentTwice: true))
        let before = state
        for event: RequestLifecycle.Event in [
            .concluded(token: "theirs", .delivered(status: 200), due: start),
            .abandoned(token: "theirs", now: start),
        ] {
            #expect(throws: RequestLifecycle.Refusal.staleLease) { try state.apply(event) }
        }
        #expect(state == before)
    }

    @Test func `a released request still waits for its dependencies`() throws {
        var state = RequestLifecycle(phase: .held(.user), rules: RequestRules(mayBeSentTwice: true))
        try state.apply(.released([.user], now: start, isBlocked: true))
        #expect(state.phase == .blocked)
    }

    @Test(arguments: allCells.filter { $0.outcome != "-" })
    func
        `only a claim, an uncounted attempt, a missing credential and a retry change the numbers of attempts`(
            cell: Cell
        ) throws
    {
        var state = state(cell)
        try state.apply(Self.events[cell.event]!)
        let (attempts, deferrals) =
            switch cell.event {
            case "claim": (4, 1)
            case "deferred", "auth": (2, 2)
            case "retry": (0, 0)
            default: (3, 1)
            }
        #expect(state.attempts == attempts && state.deferrals == deferrals)
    }

    @Test(arguments: [1, 3])
    func `a request is dead after its last counted attempt`(most: Int) throws {
        let rules = RequestRules(mayBeSentTwice: true, maximumAttempts: most)
        var state = RequestLifecycle(phase: .pending(due: start), rules: rules)
        for attempt in 1...most {
            for countsAsAttempt in [false, true] {
                try state.apply(.claimed(Self.lease))
                try state.apply(
                    .concluded(token: "mine", .retry(countsAsAttempt: countsAsAttempt), due: start)
                )
            }
            #expect(state.attempts == attempt)
        }
        let reason = "failed \(most) \(most == 1 ? "time" : "times")"
        #expect(state.phase == .finished(.dead(.attemptsUsedUp, reason: reason)))
    }
}
