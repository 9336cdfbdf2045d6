internal import Foundation
internal import GRDB

/// T6: what has lived too long, and what is remembered too long.
extension StoreTransaction {
    /// How many are given up, or forgotten, in one transaction.
    private static let batch = 256

    /// Within the boot that a request came in its own clock tells; else the wall clock, if it is to be believed
    /// or this boot alone has lasted long enough.
    func isExpired(_ row: StoredRow) throws -> Bool {
        if try row["boot"] == environment.boot { return try row["boot_expire_at"] <= clock.sinceBoot }
        return try row["expire_at"] <= now.milliseconds
            && (environment.clock.isSynchronized() || row["life"] <= clock.sinceBoot)
    }

    /// Which requests' `expire_at` counts.
    private var trust: StatementArguments {
        [
            "boot": environment.boot, "trusted": environment.clock.isSynchronized(),
            "sinceBoot": clock.sinceBoot,
        ]
    }

    mutating func expire() throws -> Duration? {
        try followClock()
        let isMoreToGiveUp = try giveUp()
        let isMoreToForget = try forgetHistory()
        try forgetLanes()
        return isMoreToGiveUp || isMoreToForget ? .zero : try nextExpiry()
    }

    /// Times of giving up are kept by the wall clock, for there is an index on them; when it is set, those of
    /// this boot are set too.
    private func followClock() throws {
        let known: Int64 = try row("SELECT clock_offset FROM meta")!["clock_offset"]
        // Slewing moves it by less.
        guard abs(known - clock.offset) > 1000 else { return }
        try execute(
            "UPDATE request SET expire_at = boot_expire_at + ? WHERE boot = ?",
            [clock.offset, environment.boot]
        )
        try execute("UPDATE meta SET clock_offset = ?", [clock.offset])
    }

    /// Whether there are more than one transaction should hold.
    private mutating func giveUp() throws -> Bool {
        let candidates = try rows(
            StoreStatements.expired,
            trust &+ ["now": now.milliseconds, "limit": Self.batch]
        )
        for row in candidates {
            let request = try StoredRequest(row: row)
            guard try isExpired(row) else {
                // Only a request of this boot, by whose own clock there is time left.
                try execute(
                    "UPDATE request SET expire_at = boot_expire_at + ? WHERE seq = ?",
                    [clock.offset, request.sequence]
                )
                continue
            }
            try move(request, by: .givenUp(.expired, reason: RequestState.expiredReason))
            changedLanes.insert(request.lane)
        }
        return candidates.count == Self.batch
    }

    private func nextExpiry() throws -> Duration? {
        let first = try row(
            StoreStatements.nextToExpire,
            trust
        )
        return try first.map { until(Timestamp(milliseconds: try $0["expire_at"])) }
    }
}

// MARK: - History

extension StoreTransaction {
    private static let historyRows = "SELECT position, seq, body_file FROM history"

    /// Whether there is more than one transaction should forget.
    private mutating func forgetHistory() throws -> Bool {
        let retention = settings.retention
        var isMoreLeft = false
        for state in QueuedRequest.State.allCases where state.isFinal {
            let age = state == .dead ? retention.dead : retention.done
            let aged = try forget(
                "\(Self.historyRows) WHERE state = :state AND finished_at <= :before LIMIT \(Self.batch)",
                ["state": state.rawValue, "before": (now - age).milliseconds]
            )
            isMoreLeft = isMoreLeft || aged == Self.batch
            guard state != .dead else { continue }
            let surplus = try forget(
                """
                \(Self.historyRows) WHERE state = :state
                ORDER BY finished_at DESC LIMIT \(Self.batch) OFFSET :count
                """,
                ["state": state.rawValue, "count": retention.doneCount]
            )
            isMoreLeft = isMoreLeft || surplus == Self.batch
        }
        return try forgetBytes(over: retention.bytes) || isMoreLeft
    }

    private mutating func forgetBytes(over limit: Int64) throws -> Bool {
        guard try historyBytes() > limit else { return false }
        // A wrong count would cost requests that somebody may still want to send again.
        try execute("UPDATE meta SET history_bytes = (SELECT ifnull(sum(kept_bytes), 0) FROM history)")
        for _ in 0..<Self.batch {
            guard try historyBytes() > limit else { return false }
            try forget("\(Self.historyRows) WHERE kept_bytes > 0 ORDER BY position LIMIT 1")
        }
        return true
    }

    private func historyBytes() throws -> Int64 {
        try row("SELECT history_bytes FROM meta")!["history_bytes"]
    }

    @discardableResult
    private mutating func forget(_ selection: String, _ arguments: StatementArguments = StatementArguments())
        throws -> Int
    {
        let forgotten = try rows(selection, arguments)
        for row in forgotten {
            let sequence: Int64 = try row["seq"]
            try execute("DELETE FROM history WHERE position = ?", [row["position"] as Int64])
            try requireChange(of: sequence)
            for table in ["attempt", "response"] {
                try execute("DELETE FROM \(table) WHERE seq = ?", [sequence])
            }
            try freeBody(sequence, file: try row["body_file"])
        }
        return forgotten.count
    }
}
