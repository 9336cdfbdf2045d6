internal import Foundation
internal import GRDB

/// Gives up expired requests (T6), and removes finished requests whose retention period is over.
extension StoreTransaction {
    /// The maximum number of requests that one transaction gives up, and that each of its statements removes.
    private static let batch = 256

    /// Returns whether a request has expired.
    ///
    /// In the boot to which its times belong (``StoredTimes``), the boot clock decides. Otherwise the wall clock
    /// decides. It is trusted only if it is synchronized, or if the machine has already run for the request's time to
    /// live.
    func isExpired(_ row: StoredRow) throws -> Bool {
        if try row["boot"] == environment.boot { return try row["boot_expire_at"] <= clock.sinceBoot }
        return try row["expire_at"] <= now.milliseconds
            && (environment.clock.isTrusted || row["life"] <= clock.sinceBoot)
    }

    /// The arguments of the statements that check whether the `expire_at` of a request can be trusted.
    private var trust: StatementArguments {
        moment &+ ["trusted": environment.clock.isTrusted]
    }

    mutating func expire() throws -> Duration? {
        // Also if the clock was not set: it may have been synchronized.
        try followClock()
        try execute(StoreStatements.endClosures, [clock.sinceBoot])
        let isMoreToGiveUp = try giveUp()
        let isMoreToForget = try purgeHistory()
        try deleteUnusedLanes()
        return isMoreToGiveUp || isMoreToForget ? .zero : try nextExpiry()
    }

    /// Adjusts the stored times if the wall clock was set.
    mutating func followClock() throws {
        let times = StoredTimes(database: database, clock: clock, isTrusted: environment.clock.isTrusted)
        guard let step = try times.followClock(boot: environment.boot) else { return }
        try execute(
            StoreStatements.followClock,
            [
                "step": step, "now": now.milliseconds, "limit": now.milliseconds - max(0, step),
                "busiest": busiest, "farthest": Timestamp.farthest,
            ]
        )
        changedLanes.formUnion(
            try rows("SELECT id FROM lane WHERE requests > 0").map { try $0["id"] as Int64 }
        )
    }

    /// Gives up expired requests. Returns whether another transaction must give up more.
    private mutating func giveUp() throws -> Bool {
        let candidates = try rows(
            StoreStatements.expired,
            trust &+ ["limit": Self.batch]
        )
        for row in candidates {
            let request = try StoredRequest(row: row)
            guard try isExpired(row) else {
                // According to the boot clock, this request of the current boot has not expired, so its stored time is
                // wrong.
                try execute(
                    "UPDATE request SET expire_at = boot_expire_at + ? WHERE seq = ?",
                    [clock.offset, request.sequence]
                )
                continue
            }
            try move(request, by: .givenUp(.expired, reason: RequestLifecycle.expiredReason))
            changedLanes.insert(request.lane)
        }
        return candidates.count == Self.batch
    }

    private func nextExpiry() throws -> Duration? {
        let first = try row(StoreStatements.nextToExpire, trust)
        return try first.map { until(Timestamp(milliseconds: try $0["expire_at"])) }
    }
}

// MARK: - History

extension StoreTransaction {
    private static let historyRows = "SELECT position, seq, body_file FROM history"

    /// Removes finished requests that are too old, and the oldest ones of a user who has too many. Returns whether
    /// another transaction must remove more.
    private mutating func purgeHistory() throws -> Bool {
        let retention = settings.retention
        var isMoreLeft = false
        for state in QueuedRequest.State.allCases where state.isFinal {
            let before = now - (state == .dead ? retention.dead : retention.done)
            let aged = try purge(
                """
                \(Self.historyRows) WHERE state = :state AND finished_at <= :before
                AND (finished_boot = :boot OR :trusted OR :age <= :sinceBoot) LIMIT \(Self.batch)
                """,
                trust &+ [
                    "state": state.rawValue, "before": before.milliseconds,
                    "age": now.milliseconds - before.milliseconds,
                ]
            )
            isMoreLeft = isMoreLeft || aged == Self.batch
            guard state != .dead else { continue }
            for row in try rows(StoreStatements.submitters, ["state": state.rawValue]) {
                let user: UInt32? = try row["user"]
                let surplus = try purge(
                    StoreStatements.finishedSurplus,
                    [
                        "state": state.rawValue, "user": user, "count": retention.doneCount,
                        "limit": Self.batch,
                    ]
                )
                isMoreLeft = isMoreLeft || surplus == Self.batch
            }
        }
        return try purgeBytes(over: retention.bytes) || isMoreLeft
    }

    /// Removes the oldest requests of the users whose requests have most bytes, so that the requests of one user do not
    /// displace those of others. Returns whether another transaction must remove more.
    private mutating func purgeBytes(over limit: Int64) throws -> Bool {
        guard try historyBytes() > limit else { return false }
        var kept = try keptBytes()
        // Corrects the counter before anything is removed. With a wrong counter, this would remove dead requests that a
        // user may still want to retry.
        try execute("UPDATE meta SET history_bytes = ?", [kept.values.reduce(0, +)])
        var oldest: [UInt32?: ArraySlice<StoredRow>] = [:]
        for _ in 0..<Self.batch {
            guard try historyBytes() > limit, let (user, bytes) = kept.max(by: { $0.value < $1.value }) else {
                return false
            }
            let rows = try oldest[user] ?? oldestKept(of: user)
            guard let row = rows.first else { return false }
            try remove(row)
            kept[user] = try bytes - row["kept_bytes"]
            oldest[user] = rows.dropFirst()
        }
        return true
    }

    private func oldestKept(of user: UInt32?) throws -> ArraySlice<StoredRow> {
        try rows(StoreStatements.oldestKept, ["user": user, "limit": Self.batch])[...]
    }

    /// Returns the bytes of finished requests by their submitters.
    private func keptBytes() throws -> [UInt32?: Int64] {
        let users = try rows(StoreStatements.keptBytes).map { row in
            (try row["user"] as UInt32?, try row["bytes"] as Int64)
        }
        return Dictionary(uniqueKeysWithValues: users)
    }

    private func historyBytes() throws -> Int64 {
        try row("SELECT history_bytes FROM meta")!["history_bytes"]
    }

    private mutating func purge(_ selection: String, _ arguments: StatementArguments) throws -> Int {
        let forgotten = try rows(selection, arguments)
        for row in forgotten { try remove(row) }
        return forgotten.count
    }

    /// Removes the finished request with a number.
    mutating func forget(_ sequence: Int64) throws {
        _ = try purge("\(Self.historyRows) WHERE seq = ?", [sequence])
    }

    /// - Parameter row: A row with the columns `position`, `seq` and `body_file` of `history`.
    private mutating func remove(_ row: StoredRow) throws {
        let sequence: Int64 = try row["seq"]
        try execute("DELETE FROM history WHERE position = ?", [row["position"] as Int64])
        try requireChange(of: sequence)
        for table in ["attempt", "response"] {
            try execute("DELETE FROM \(table) WHERE seq = ?", [sequence])
        }
        try freeBody(sequence, file: try row["body_file"])
    }
}
