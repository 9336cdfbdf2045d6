internal import Foundation
internal import GRDB

/// Claims requests for sending (transition T2).
extension StoreTransaction {
    /// The number of rows after which a claim stops reading; a later transaction continues. A claim reads that many
    /// rows only if most of them have expired.
    private static let mostLookedAt = 256

    mutating func claim(_ claims: [LaneClaim]) throws -> [ClaimedBatch] {
        let token = UUIDv4.make()
        return try claims.map { try claim($0, token: token) }
    }

    private mutating func claim(_ claim: LaneClaim, token: String) throws -> ClaimedBatch {
        let nothing = ClaimedBatch(lane: claim.lane, requests: [], due: nil)
        guard let lane = try lane(claim.lane) else { return nothing }
        // The scheduler demands a release only once, so a paused lane releases, too.
        if let reasons = claim.releasing { try release(reasons, inLane: lane.id) }
        guard !lane.isPaused else { return nothing }
        if claim.releasing != nil { try bringForward(inLane: lane.id, now.milliseconds) }
        // The lane was just read and is not empty, so it need not be read again at the end of the transaction.
        if !lane.isEmpty { drainedLanes.remove(lane.id) }
        let lease = Lease(token: token, ownerEpoch: environment.ownerEpoch)
        var retries = RetryCounter(claim.retries, longestDelay: settings.longestDelay)
        let requests = try take(claim.limit, of: lane, lease, &retries)
        if requests.isEmpty { try repairClock(inLane: lane.id) }
        return ClaimedBatch(
            lane: lane.id,
            requests: requests,
            due: try due(inLane: lane),
            postponement: retries.postponement
        )
    }

    private mutating func take(
        _ limit: Int,
        of lane: StoredLane,
        _ lease: Lease,
        _ retries: inout RetryCounter
    ) throws -> [ClaimedRequest] {
        if lane.key.mode == .parallel { return try takeByPriority(limit, of: lane.id, lease, &retries) }
        let arguments: StatementArguments = ["lane": lane.id, "now": now.milliseconds, "limit": limit]
        return try take(try rows(StoreStatements.claimableHeadOfLane, arguments), lease, &retries)
    }

    private mutating func takeByPriority(
        _ limit: Int,
        of lane: Int64,
        _ lease: Lease,
        _ retries: inout RetryCounter
    ) throws -> [ClaimedRequest] {
        var (taken, lookedAt) = ([ClaimedRequest](), 0)
        while taken.count < limit, lookedAt < Self.mostLookedAt, let turn = try nextTurn(inLane: lane) {
            let wanted = limit - taken.count
            let rows = try rows(
                StoreStatements.claimableInParallelLane,
                ["lane": lane, "priority": turn.priority, "until": turn.until, "limit": wanted]
            )
            lookedAt += rows.count
            taken += try take(rows, lease, &retries)
            // If the query returned as many rows as wanted, there may be more to claim: some of these rows may have
            // expired or been postponed.
            if turn.isLast, rows.count < wanted { break }
        }
        return taken
    }

    /// Claims the requests of these rows, gives up those that have expired, and postpones retries that are not
    /// permitted now.
    private mutating func take(
        _ rows: [StoredRow],
        _ lease: Lease,
        _ retries: inout RetryCounter
    ) throws -> [ClaimedRequest] {
        try rows.compactMap { row in
            var request = try StoredRequest(row: row)
            guard try !isExpired(row) else {
                try move(request, by: .givenUp(.expired, reason: RequestLifecycle.expiredReason))
                return nil
            }
            if request.state.attempts > 0, let delay = retries.delayOfNext() {
                let due = now + delay
                try execute(StoreStatements.postpone, ["seq": request.sequence, "due": due.milliseconds])
                return nil
            }
            let opened: (row: StoredRow, content: RequestContent)
            do { opened = try self.opened(row) } catch let fault as SealFault {
                try hold(request, .key, because: "\(fault)")
                return nil
            }
            if let fault = request.options.unreadable ?? request.options.constraints.fault {
                try hold(request, .configuration, because: fault)
                return nil
            }
            try request.state.apply(.claimed(lease))
            try execute(
                StoreStatements.claim,
                [
                    "seq": request.sequence, "token": lease.token, "epoch": lease.ownerEpoch,
                    "now": now.milliseconds,
                ]
            )
            return try ClaimedRequest(request, opened.row, opened.content, lease, now: now)
        }
    }

    /// Holds a pending request that must not be sent as it is, so that the others can be claimed.
    private mutating func hold(_ request: StoredRequest, _ reason: HoldReason, because fault: String) throws {
        try move(request, by: .unusable(reason))
        try execute("UPDATE request SET last_error = ? WHERE seq = ?", [fault, request.sequence])
    }

    /// Corrects due times that are too far in the future because the wall clock was ahead before a reboot.
    private func repairClock(inLane lane: Int64) throws {
        let latest = (now + settings.longestDelay).milliseconds
        try bringForward(inLane: lane, latest)
    }

    /// Makes the pending requests of a lane due at `latest` (in milliseconds), unless they are due earlier. A request
    /// is not moved to a time before its scheduled time, or before the server should be done with the previous attempt.
    private func bringForward(inLane lane: Int64, _ latest: Int64) throws {
        try execute(StoreStatements.bringForward, ["lane": lane, "latest": latest, "busiest": busiest])
    }

    /// The latest plausible value of the column `busy_until`, in milliseconds. A later one means that the wall clock
    /// was ahead before a reboot.
    var busiest: Int64 { (now + AttemptTimeouts.longest).milliseconds }

    /// Releases the requests of a lane that are held for one of the reasons.
    mutating func release(_ reasons: Set<HoldReason>, inLane lane: Int64) throws {
        for reason in reasons.sorted(by: { $0.rawValue < $1.rawValue }) {
            try release(reason, inLane: lane)
        }
    }

    private mutating func release(_ reason: HoldReason, inLane lane: Int64) throws {
        var last: Int64 = 0
        while case let held = try heldRows(reason, inLane: lane, after: last), !held.isEmpty {
            for row in held { try release(try StoredRequest(row: row), [reason]) }
            last = try held[held.count - 1]["seq"]
        }
    }

    mutating func release(_ request: StoredRequest, _ reasons: Set<HoldReason>) throws {
        let isBlocked = try isBlocked(request.sequence)
        let due = try request.earliest(from: now)
        try move(request, by: .released(reasons, now: due, isBlocked: isBlocked))
        changedLanes.insert(request.lane)
    }

    /// Returns held rows in the order of their numbers. Rows whose encryption key is still missing are left out: they
    /// would only be held again.
    private func heldRows(_ reason: HoldReason, inLane lane: Int64, after last: Int64) throws -> [StoredRow] {
        let keys = environment.sealer.keys?.keys.map(\.id) ?? []
        return try rows(
            StoreStatements.held,
            ["lane": lane, "reason": reason.rawValue, "keys": Self.array(keys), "after": last]
        )
    }

    /// Returns a JSON array of names, which contain no characters that must be escaped.
    private static func array(_ names: [String]) -> String {
        "[\(names.map { "\"\($0)\"" }.joined(separator: ","))]"
    }
}

// MARK: - Order

extension StoreTransaction {
    /// The priority whose requests are claimed next, until requests of another priority go first.
    private struct Turn {
        let priority: Int
        /// The latest due time of the requests to claim, in milliseconds.
        let until: Int64
        /// Whether no other priority has due requests.
        let isLast: Bool
    }

    /// Returns the priority whose first due request goes next; `nil` if no request is due.
    ///
    /// A request that has been due for ``StoreSettings/ageingStep`` goes before younger ones of the next higher
    /// priority. The requests are therefore in the order of their due time plus one step for each level of priority.
    /// The index has the requests of each priority in the order of their due times, so only the first one of each
    /// priority must be compared.
    private func nextTurn(inLane lane: Int64) throws -> Turn? {
        let step = Int64(settings.ageingStep / .milliseconds(1))
        let rows = try rows(StoreStatements.claimablePriorities, ["lane": lane, "now": now.milliseconds])
        let heads: [(rank: Int64, priority: Int)] = try rows.compactMap { row in
            guard let first = try row["first"] as Int64? else { return nil }
            let priority: Int = try row["priority"]
            return (first + Int64(priority) * step, priority)
        }
        let order = heads.sorted { $0 < $1 }
        guard let (_, priority) = order.first else { return nil }
        guard let rival = order.dropFirst().first else {
            return Turn(priority: priority, until: now.milliseconds, isLast: true)
        }
        // Of two requests with the same rank, the one with the higher priority goes first.
        let isBehindEqual: Int64 = rival.priority < priority ? 1 : 0
        let until = rival.rank - Int64(priority) * step - isBehindEqual
        return Turn(priority: priority, until: min(until, now.milliseconds), isLast: false)
    }
}

/// Counts the retries that a claim may still take, and spaces those that it postpones.
private struct RetryCounter {
    /// `nil` for any number.
    private let allowance: RetryAllowance?
    private let longestDelay: Duration
    private var taken = 0
    private var postponed = 0
    /// The longest delay of ``delayOfNext()``; `nil` if there was none.
    private(set) var postponement: Duration?

    init(_ allowance: RetryAllowance?, longestDelay: Duration) {
        self.allowance = allowance
        self.longestDelay = longestDelay
    }

    /// Returns by how much the next retry is postponed; `nil` if it may be sent.
    mutating func delayOfNext() -> Duration? {
        guard let allowance else { return nil }
        guard taken >= allowance.count else {
            taken += 1
            return nil
        }
        let delay = min(allowance.wait + RetryAllowance.spacing * postponed, longestDelay)
        postponed += 1
        postponement = delay
        return delay
    }
}

extension ClaimedRequest {
    /// - Parameter row: The row, decrypted.
    fileprivate init(
        _ request: StoredRequest,
        _ row: StoredRow,
        _ content: RequestContent,
        _ lease: Lease,
        now: Timestamp
    ) throws {
        try self.init(
            sequence: request.sequence,
            id: request.id,
            lease: lease,
            method: row["method"],
            url: row["url"],
            headers: HeaderText.decode(content.headers),
            body: StoredBody(row: row, content.digest),
            key: content.key,
            mayBeSentTwice: request.state.rules.mayBeSentTwice,
            options: request.options,
            lastStatus: row["last_status"],
            conflictAge: (row["conflict_at"] as Int64?).map { now - Timestamp(milliseconds: $0) },
            attempts: request.state.attempts,
            deferrals: request.state.deferrals,
            overruns: row["overruns"]
        )
    }
}

extension StoredBody {
    /// Creates the value from a decrypted row. The length and the SHA-256 of an inline body are checked; a spooled body
    /// is not read.
    ///
    /// - Parameter digest: The SHA-256 of the accepted body.
    init(row: StoredRow, _ digest: SHA256Digest?) throws {
        do {
            self = try StoredBody(whole: row, digest)
        } catch let damage as BodyDamage {
            self =
                switch damage {
                case .changed(let how): .changed(how)
                case .missing: .unreadable
                }
        }
    }

    /// Creates the value like ``init(row:_:)``, but throws an error if the body is not the accepted one.
    ///
    /// - Throws: ``BodyDamage``, ``DamagedColumn``, or ``QueueError`` if SHA-256 is not available.
    init(whole row: StoredRow, _ digest: SHA256Digest?) throws {
        let size: Int64 = try row["body_bytes"]
        if let name = try row["body_file"] as String? {
            let key: Data? = try row["body_key"]
            guard let body = SpooledBody(row: name, size: size, digest: digest, sealedKey: key) else {
                throw BodyDamage.missing(
                    "the name of the body's file, \(quoted(name)), or its SHA-256 is invalid"
                )
            }
            self = .spooled(body)
            return
        }
        let bytes = try row["bytes"] ?? Data()
        guard bytes.count == size else {
            throw BodyDamage.missing("the body has \(bytes.count) bytes instead of \(size)")
        }
        self = bytes.isEmpty ? .none : .inline(bytes)
        guard !bytes.isEmpty, case let found = try SHA256.digest(of: bytes), found != digest else { return }
        throw BodyDamage.changed("its SHA-256 is \(found)")
    }
}

/// Why a row does not have the body that was accepted.
enum BodyDamage: Error, CustomStringConvertible {
    /// The text describes the difference.
    case changed(String)
    case missing(String)

    var description: String {
        switch self {
        case .changed(let how): "the body was changed: \(how)"
        case .missing(let why): why
        }
    }
}
