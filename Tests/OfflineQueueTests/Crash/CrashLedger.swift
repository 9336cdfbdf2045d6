internal import NetwatchTestSupport
internal import QueueTestProcess

/// A record of a crash series, which finds violated guarantees. It contains what can be observed from outside:
///
/// - the acceptances that producers received,
/// - the requests that arrived at the server,
/// - the rows in the store after each kill.
struct CrashLedger: Sendable {
    /// A row of the store: an unfinished request or a finished one.
    struct Row: Hashable, Sendable {
        let state: String
        let key: String?
        /// The name of the body's spool file; `nil` if it has none.
        var bodyFile: String?
    }

    /// A violated guarantee. `run` is the number of the kill after which it was found.
    enum Violation: Hashable, Sendable {
        /// The request was accepted but is not in the store after a kill.
        case lost(id: String, run: Int)
        /// The request is in a final or held state without a reason, such as `delivered` without a successful response.
        case untruthful(id: String, state: String, run: Int)
        /// The request was delivered, and a later run found it unfinished.
        case reopened(id: String, run: Int)
        /// The request arrived before an earlier request of its lane had a successful response.
        case overtook(id: String, earlier: String)
        /// The request had more successful responses than the kills during its attempts can explain.
        case duplicated(id: String, times: Int, kills: Int)
        /// The request arrived with another idempotency key or without one, or the stored key has changed.
        case keyChanged(id: String)
        /// The request arrived with another method or body.
        case damaged(id: String)
        /// The request is unfinished, and the file of its body is missing.
        case bodyMissing(id: String, run: Int)
        /// The request was never delivered.
        case stuck(id: String, state: String)
        /// A finding of SQLite's integrity check.
        case corrupt(run: Int, finding: String)
        /// The queue could not be opened, or the process ended without being killed.
        case ended(run: Int, words: String)
    }

    private struct Request {
        var isAccepted = false
        var acceptedKey: String?
        var keys: Set<String?> = []
        var firstArrival: Int?
        var firstSuccess: Int?
        var successes = 0
        var killsInFlight = 0
        var isFinished = false
        var isLost = false
    }

    private var requests: [String: Request] = [:]
    private var held: Set<String> = []
    /// The ids that were delivered according to the store when all requests had ended.
    private(set) var delivered: Set<String> = []
    /// The idempotency keys and the bodies of the webhooks that arrived, by the id of their request.
    private(set) var reports: [String: Set<[String]>] = [:]
    private var found: [Violation] = []
    private var arrivals = 0
    private var kills = 0
    private var killsWithAcceptance = 0
    private var acceptances = 0
    private var unjudgedAcceptances = 0
    private var places: [String: CrashFigures.Place] = [:]

    // MARK: Events

    mutating func accepted(_ id: String, key: String?) {
        acceptances += 1
        unjudgedAcceptances += 1
        requests[id, default: Request()].isAccepted = true
        requests[id]?.acceptedKey = key
    }

    mutating func arrived(_ id: String, key: String?, isWhole: Bool, isAnsweredWithSuccess: Bool) {
        arrivals += 1
        var request = requests[id] ?? Request()
        request.keys.insert(key)
        request.firstArrival = request.firstArrival ?? arrivals
        if isAnsweredWithSuccess {
            request.successes += 1
            request.firstSuccess = request.firstSuccess ?? arrivals
        }
        requests[id] = request
        if !isWhole { found.append(.damaged(id: id)) }
    }

    mutating func reported(_ id: String, _ webhook: ScriptedServer.Request) {
        let key = webhook.values(of: "Idempotency-Key").first ?? ""
        reports[id, default: []].insert([key, String(decoding: webhook.body, as: UTF8.self)])
    }

    /// Records a kill, and what the store contained afterwards. Must be called after everything that the process
    /// printed was recorded.
    mutating func killed(run: Int, rows: [String: Row], integrity: [String], spool: Set<String> = []) {
        kills += 1
        if unjudgedAcceptances > 0 { killsWithAcceptance += 1 }
        unjudgedAcceptances = 0
        for finding in integrity where finding != "ok" { found.append(.corrupt(run: run, finding: finding)) }
        for id in requests.keys { judge(id, rows[id], run: run) }
        for (id, row) in rows where !(row.bodyFile.map(spool.contains) ?? true) {
            if row.state != "delivered" { found.append(.bodyMissing(id: id, run: run)) }
        }
    }

    mutating func passed(_ place: String, isReached: Bool) {
        places[place, default: CrashFigures.Place()].visits += 1
        if isReached { places[place]?.reached += 1 }
    }

    mutating func ended(run: Int, words: String) {
        found.append(.ended(run: run, words: words))
    }

    mutating func drained(rows: [String: Row]) {
        delivered = Set(requests.keys.filter { rows[$0]?.state == "delivered" })
        for (id, request) in requests {
            let state = rows[id]?.state
            guard request.isAccepted || state != nil else { continue }
            if state == "held", mayBeHeld(id, request) {
                held.insert(id)
                continue
            }
            if request.successes == 0 || state != "delivered" {
                found.append(.stuck(id: id, state: state ?? "absent"))
            }
        }
    }

    /// Returns whether the request may be held: an at-most-once request that may have been sent is held after a kill.
    private func mayBeHeld(_ id: String, _ request: Request) -> Bool {
        isAtMostOnce(id) && (request.firstArrival != nil || request.killsInFlight > 0)
    }

    /// Returns whether the test process may have held the request. It holds and releases all requests of a FIFO lane
    /// together.
    private func isEdited(_ id: String) -> Bool { TestProcessRequest(id: id)?.isFIFO == true }

    private func isAtMostOnce(_ id: String) -> Bool { TestProcessRequest(id: id)?.isAtMostOnce == true }

    private mutating func judge(_ id: String, _ row: Row?, run: Int) {
        guard var request = requests[id], !request.isLost else { return }
        defer { requests[id] = request }
        guard let row else {
            // A request that arrived must be on the disk, even if the process was killed before it reported the
            // acceptance.
            request.isLost = request.isAccepted || request.firstArrival != nil
            if request.isLost { found.append(.lost(id: id, run: run)) }
            return
        }
        switch row.state {
        case "delivered" where request.successes > 0: request.isFinished = true
        case "held" where mayBeHeld(id, request): break
        // The process was killed after it held the lane, and before it released it.
        case "held" where isEdited(id) && !request.isFinished: break
        case "delivered", "dead", "cancelled", "superseded", "held":
            found.append(.untruthful(id: id, state: row.state, run: run))
        case _ where request.isFinished: found.append(.reopened(id: id, run: run))
        case "inflight": request.killsInFlight += 1
        default: break
        }
        if request.isAccepted, row.key != request.acceptedKey { found.append(.keyChanged(id: id)) }
    }
}

// MARK: - Verdict

extension CrashLedger {
    var violations: [Violation] {
        found + requests.flatMap { violations(of: $1, id: $0) } + overtakings
    }

    private func violations(of request: Request, id: String) -> [Violation] {
        var violations: [Violation] = []
        let keys = request.isAccepted ? request.keys.union([request.acceptedKey]) : request.keys
        if keys.count > 1 { violations.append(.keyChanged(id: id)) }
        let kills = isAtMostOnce(id) ? 0 : request.killsInFlight
        if request.successes > 1 + kills {
            let times = request.successes
            violations.append(.duplicated(id: id, times: times, kills: kills))
        }
        return violations
    }

    /// The requests of FIFO lanes that arrived before their predecessor was delivered.
    private var overtakings: [Violation] {
        let inOrder = requests.keys.compactMap(TestProcessRequest.init).filter(\.isFIFO)
        return Dictionary(grouping: inOrder, by: \.lane).values.flatMap { lane in
            let lane = lane.sorted { $0.number < $1.number }.map(\.id)
            return zip(lane, lane.dropFirst()).compactMap(overtaking)
        }
    }

    private func overtaking(_ earlier: String, _ id: String) -> Violation? {
        guard let arrival = requests[id]?.firstArrival else { return nil }
        let delivery = requests[earlier]?.firstSuccess ?? .max
        return delivery < arrival ? nil : .overtook(id: id, earlier: earlier)
    }

    private var lost: Int { found.count { if case .lost = $0 { true } else { false } } }

    /// The number of kills after which at least one request was lost.
    private var lossyKills: Int {
        Set(found.compactMap { if case .lost(_, let run) = $0 { run } else { nil } }).count
    }

    private var duplicates: Int { requests.values.reduce(0) { $0 + max(0, $1.successes - 1) } }

    var figures: CrashFigures {
        var figures = CrashFigures()
        figures.kills = kills
        figures.accepted = acceptances
        figures.lost = lost
        figures.delivered = requests.values.count { $0.successes > 0 }
        figures.attempts = arrivals
        figures.duplicates = duplicates
        figures.inFlight = requests.values.reduce(0) { $0 + $1.killsInFlight }
        figures.heldAtMostOnce = held.count
        figures.violations = violations
        figures.killsAfterAcceptance = killsWithAcceptance
        figures.lossyKills = lossyKills
        figures.places = places
        return figures
    }
}
