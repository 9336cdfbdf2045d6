internal import GRDB

/// Edits all requests that match a filter, in parts of one transaction.
///
/// The matching requests are read first, because editing one of them may change the state of another. Each part is
/// edited by a separate statement, to limit SQLite's memory use. During a statement, SQLite keeps the original of each
/// page that the statement changes.
extension StoreTransaction {
    /// The maximum number of requests that one statement edits.
    private static let part = 4096

    /// Returns how many requests an edit would change, and how many it would refuse.
    func count(_ edit: QueueEdit, matching filter: RequestFilter) throws -> FilteredEdit {
        var edited = FilteredEdit()
        let arguments = filter.arguments
        for row in try rows(Self.countsByState(of: Self.live(filter)), arguments) {
            edited.add(try row["number"], isRefused: try edit.refuses(row["state"]))
        }
        for row in try rows(Self.countsByState(of: Self.finished(filter)), arguments) {
            edited.add(try row["number"], isRefused: try edit.refuses(row["state"]))
        }
        return edited
    }

    mutating func edit(_ edit: QueueEdit, matching filter: RequestFilter) throws -> FilteredEdit {
        var edited = FilteredEdit()
        let live = try numbers("SELECT seq \(Self.live(filter)) ORDER BY seq", filter.arguments)
        let finished = try numbers("SELECT seq \(Self.finished(filter)) ORDER BY seq", filter.arguments)
        for part in live.parts(of: Self.part) { try editLive(edit, part, &edited) }
        for part in finished.parts(of: Self.part) { try editFinished(edit, part, &edited) }
        return edited
    }

    private static func live(_ filter: RequestFilter) -> String {
        "FROM request JOIN (SELECT id AS lane, host, label FROM lane) ON lane = lane_id WHERE \(filter.condition)"
    }

    private static func finished(_ filter: RequestFilter) -> String {
        "FROM history WHERE \(filter.condition)"
    }

    private static func countsByState(of selection: String) -> String {
        "SELECT state, count(*) AS number \(selection) GROUP BY state"
    }

    /// Returns the integers that a query with one column selects. They take 8 bytes for each row, less than a copy of
    /// the row.
    private func numbers(_ sql: String, _ arguments: StatementArguments) throws -> [Int64] {
        let cursor = try Row.fetchCursor(try database.cachedStatement(sql: sql), arguments: arguments)
        var numbers: [Int64] = []
        while let row = try cursor.next() {
            let value: DatabaseValue = row[0]
            guard let number = Int64.fromDatabaseValue(value) else {
                throw DamagedColumn(name: "seq", found: value.storage)
            }
            numbers.append(number)
        }
        return numbers
    }
}

extension FilteredEdit {
    fileprivate mutating func add(_ count: Int, isRefused: Bool) {
        if isRefused { result.refused += count } else { result.done += count }
    }
}

extension QueueEdit {
    /// Returns whether the edit is refused for requests in a state. The result is approximate. For example, whether a
    /// request in flight can be released, or a dead one retried, depends on other columns.
    fileprivate func refuses(_ state: QueuedRequest.State) -> Bool {
        switch self {
        case .cancel: state.isFinal && state != .dead
        case .withdraw, .hold: state.isFinal
        case .release: state != .held && state != .inflight
        case .retry: state == .inflight || (state.isFinal && state != .dead)
        }
    }
}

extension [Int64] {
    fileprivate func parts(of size: Int) -> [ArraySlice<Int64>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}

// MARK: - Unfinished requests

extension StoreTransaction {
    private mutating func editLive(
        _ edit: QueueEdit,
        _ sequences: ArraySlice<Int64>,
        _ edited: inout FilteredEdit
    ) throws {
        let part = Part(edit.releases ? try readable(sequences) : sequences)
        let lanes = try numbers("SELECT DISTINCT lane_id FROM request WHERE \(Part.isIn)", part.arguments)
        changedLanes.formUnion(lanes)
        if edit == .release { releasedLanes.formUnion(lanes) }
        let done =
            switch edit {
            case .cancel, .withdraw: try cancel(part, &edited)
            case .hold: try hold(part)
            case .release: try release(part)
            case .retry(let newKey, _): try retry(part, newKey: newKey)
            }
        edited.add(done, isRefused: false)
        edited.add(sequences.count - done, isRefused: true)
    }

    /// Returns the requests without those that are held for `key` and still cannot be decrypted: ending such a hold
    /// would have no effect.
    private func readable(_ sequences: ArraySlice<Int64>) throws -> ArraySlice<Int64> {
        let held = try numbers(
            "SELECT seq FROM request WHERE state = 'held' AND hold_reason = 'key' AND \(Part.isIn)",
            Part(sequences).arguments
        )
        let unreadable = Set(try held.filter(isUnreadable))
        return sequences.filter { !unreadable.contains($0) }[...]
    }

    /// The requests that one statement edits.
    private struct Part {
        static let isIn = "seq IN (SELECT value FROM json_each(:part))"

        let count: Int
        let arguments: StatementArguments

        init(_ sequences: ArraySlice<Int64>) {
            count = sequences.count
            arguments = ["part": "[\(sequences.map(String.init).joined(separator: ","))]"]
        }
    }

    /// Runs an UPDATE or DELETE statement for a part. Returns the number of changed rows.
    private func change(_ sql: String, _ part: Part, _ others: StatementArguments = [:]) throws -> Int {
        try execute("\(sql) AND \(Part.isIn)", part.arguments &+ others)
        return database.changesCount
    }

    private func hold(_ part: Part) throws -> Int {
        let releasableByRestart = HoldReason.releasableByRestart.map { "'\($0.rawValue)'" }.sorted().joined(
            separator: ", "
        )
        // A cancellation that is already recorded takes precedence.
        _ = try change("UPDATE request SET wish = ifnull(wish, 'hold') WHERE state = 'inflight'", part)
        _ = try change(
            """
            UPDATE request SET hold_reason = 'user', last_error = \(StoreStatements.lastError)
            WHERE state = 'held' AND hold_reason IN (\(releasableByRestart))
            """,
            part
        )
        _ = try change(
            "UPDATE request SET state = 'held', hold_reason = 'user' WHERE state IN ('pending', 'blocked')",
            part
        )
        return part.count
    }

    private func release(_ part: Part) throws -> Int {
        let unheld = try change(
            "UPDATE request SET wish = NULL WHERE state = 'inflight' AND wish = 'hold'",
            part
        )
        // A request that is held for a failed dependency is released without its dependencies.
        try execute(
            """
            DELETE FROM depends WHERE seq IN (
                SELECT seq FROM request WHERE state = 'held' AND hold_reason = 'dependency' AND \(Part.isIn)
            )
            """,
            part.arguments
        )
        return try unheld
            + change(
                """
                UPDATE request SET hold_reason = NULL, next_at = max(:now, \(StoreStatements.earliest)),
                \(StoreStatements.withoutFailedDependency),
                state = iif(EXISTS (SELECT 1 FROM depends WHERE depends.seq = request.seq), 'blocked', 'pending')
                WHERE state = 'held'
                """,
                part,
                ["now": now.milliseconds, "busiest": busiest]
            )
    }

    private func retry(_ part: Part, newKey: Bool) throws -> Int {
        try execute(
            """
            DELETE FROM depends WHERE seq IN (SELECT seq FROM request WHERE state <> 'inflight' AND \(Part.isIn))
            """,
            part.arguments
        )
        if newKey { try renewKeys(part) }
        return try change(
            """
            UPDATE request SET state = 'pending', next_at = :now, hold_reason = NULL, attempts = 0, deferrals = 0,
            \(Self.withoutConditions), \(Self.restartedLifetime) WHERE state <> 'inflight'
            """,
            part,
            moment
        )
    }

    private func renewKeys(_ part: Part) throws {
        let waiting = try numbers(
            "SELECT seq FROM request WHERE state <> 'inflight' AND \(Part.isIn)",
            part.arguments
        )
        for sequence in waiting { try renewKey(of: sequence) }
    }
}

// MARK: - Cancelling

extension StoreTransaction {
    private mutating func cancel(_ part: Part, _ edited: inout FilteredEdit) throws -> Int {
        _ = try change("UPDATE request SET wish = 'cancel' WHERE state = 'inflight'", part)
        edited.cancelledInFlight += try numbers(
            "SELECT seq FROM request WHERE state = 'inflight' AND \(Part.isIn)",
            part.arguments
        )
        let waiting = "SELECT seq FROM request WHERE state <> 'inflight' AND \(Part.isIn)"
        let needed = try numbers(
            "SELECT DISTINCT on_seq FROM depends WHERE on_seq IN (\(waiting))",
            part.arguments
        )
        // Only bodies of more than 64 KiB have files, so the queue's limit of bytes bounds the number of names.
        freedFiles += try rows(
            "SELECT body_file FROM request WHERE body_file IS NOT NULL AND state <> 'inflight' AND \(Part.isIn)",
            part.arguments
        ).map { try $0["body_file"] }
        completedTags.formUnion(
            try rows(
                "SELECT DISTINCT tag FROM request WHERE tag IS NOT NULL AND state <> 'inflight' AND \(Part.isIn)",
                part.arguments
            ).map { try $0["tag"] }
        )
        let withOptions = try rows(
            """
            SELECT seq, options FROM request WHERE options IS NOT NULL AND state <> 'inflight' AND \(Part.isIn)
            AND (is_droppable = 0 OR instr(options, 'is_recorded') > 0) ORDER BY seq
            """,
            part.arguments
        ).map { (try $0["seq"] as Int64, EnqueueOptions(stored: try $0["options"])) }
        try execute(Self.moveCancelled, part.arguments &+ moment)
        try execute("DELETE FROM body WHERE seq IN (\(waiting))", part.arguments)
        _ = try change("DELETE FROM request WHERE state <> 'inflight'", part)
        for sequence in needed { try resolveDependents(of: sequence, isDelivered: false) }
        for (sequence, options) in withOptions {
            if options.mayHaveWebhook { try enqueueWebhook(ofFinished: sequence, isExpired: false) }
            if !options.isRecorded { try forget(sequence) }
        }
        return part.count
    }

    /// Moves cancelled requests to `history`, like ``StoreStatements/insertHistory``, but without their bodies, which
    /// are not kept.
    private static let moveCancelled = """
        INSERT INTO history (state, \(StoreStatements.finish), is_whole, kept_bytes, attempts, deferrals, last_status, last_error,
        host, label, mode, \(QueueSchema.fixedContent))
        SELECT 'cancelled', \(StoreStatements.finishValues), 0, size - body_bytes, attempts, deferrals, last_status,
        \(StoreStatements.lastError),
        host, label, mode, \(QueueSchema.fixedContent)
        FROM (SELECT id AS lane, host, label, mode FROM lane) JOIN request ON lane_id = lane
        WHERE request.state <> 'inflight' AND \(Part.isIn) ORDER BY seq
        """
}

// MARK: - Finished requests

extension EditResult {
    fileprivate var isRefused: Bool {
        if case .done = self { false } else { true }
    }
}

extension StoreTransaction {
    private mutating func editFinished(
        _ edit: QueueEdit,
        _ sequences: ArraySlice<Int64>,
        _ edited: inout FilteredEdit
    ) throws {
        for sequence in sequences {
            guard let row = try row("SELECT * FROM history WHERE seq = ?", [sequence]) else { continue }
            do {
                let result = try editHistory(edit, row)
                edited.add(1, isRefused: result.isRefused)
            } catch let error as QueueError where error.isFull {
                edited.add(1, isRefused: true)
                edited.result.refusal = edited.result.refusal ?? error
            }
        }
    }
}
