internal import Foundation
internal import GRDB

/// Reads the requests and the statistics of the queue for users.
extension StoreTransaction {
    func ids(beginningWith prefix: String, limit: Int) throws -> [String] {
        // Ids contain only printable ASCII characters, which are less than 0x7F.
        let arguments: StatementArguments = ["prefix": prefix, "end": prefix + "\u{7f}", "limit": limit]
        let found = try rows(
            """
            SELECT id FROM (
                SELECT id FROM request WHERE id >= :prefix AND id < :end
                UNION ALL SELECT id FROM history WHERE id >= :prefix AND id < :end
            ) ORDER BY id LIMIT :limit
            """,
            arguments
        )
        return try found.map { try $0["id"] }
    }

    /// The column `is_paused`: whether the request's lane or the whole queue is paused.
    private static let isPaused = "lane.is_paused OR (SELECT is_paused FROM meta) AS is_paused"

    /// The column `preceding_id`: the id of the request that must end first. For a blocked request this is its first
    /// unfinished dependency, otherwise the first request of the FIFO lane. Indexes: the primary keys of `depends` and
    /// `request`, and `request_order`.
    private static let precedingID = """
        CASE
            WHEN request.state = 'blocked' THEN (
                SELECT needed.id FROM depends JOIN request AS needed ON needed.seq = on_seq
                WHERE depends.seq = request.seq AND is_any = 0 ORDER BY on_seq LIMIT 1
            )
            WHEN mode = 'fifo' THEN (
                SELECT ahead.id FROM request AS ahead
                WHERE ahead.lane_id = lane.id AND ahead.seq < request.seq ORDER BY ahead.seq LIMIT 1
            )
        END AS preceding_id
        """

    func page(_ query: RequestQuery) throws -> RequestPage {
        var page = PageBuilder(query)
        if query.after?.isFinished != true, query.wants(isFinal: false) { try addCurrent(query, to: &page) }
        if !page.isFull, query.wants(isFinal: true) { try addFinished(query, to: &page) }
        return page.page
    }

    private func addCurrent(_ query: RequestQuery, to page: inout PageBuilder) throws {
        var last = query.after?.position ?? 0
        let found = try cursor(
            """
            SELECT request.*, host, label, mode, not_before, closed_by, \(Self.isPaused), \(Self.precedingID)
            FROM request JOIN lane ON lane.id = lane_id
            WHERE seq > :after AND \(query.matching.condition) ORDER BY seq LIMIT :limit
            """,
            query.matching.arguments &+ ["after": last, "limit": page.wanted]
        )
        while let row = try found.next() {
            last = try row.place("seq", after: last)
            let request = try QueuedRequest(row: row, isOver: false, now: now)
            guard page.add(request, ListCursor(isFinished: false, position: last)) else { return }
        }
    }

    private func addFinished(_ query: RequestQuery, to page: inout PageBuilder) throws {
        var last = query.after.flatMap { $0.isFinished ? $0.position : nil } ?? .max
        let found = try cursor(
            """
            SELECT * FROM history WHERE position < :before AND \(query.matching.condition)
            ORDER BY position DESC LIMIT :limit
            """,
            query.matching.arguments &+ ["before": last, "limit": page.wanted]
        )
        while let row = try found.next() {
            last = try row.place("position", after: .min, before: last)
            let request = try QueuedRequest(row: row, isOver: true, now: now)
            guard page.add(request, ListCursor(isFinished: true, position: last)) else { return }
        }
    }

    func details(of id: String) throws -> RequestDetails? {
        let current = try row(
            """
            SELECT request.*, label, mode, not_before, closed_by, \(Self.isPaused), \(Self.precedingID)
            FROM request JOIN lane ON lane.id = lane_id WHERE request.id = ?
            """,
            [id]
        )
        guard let row = try current ?? row("SELECT * FROM history WHERE id = ?", [id]) else { return nil }
        return try details(of: row, isOver: current == nil, replacedBy: try replacement(of: row))
    }

    /// Returns the details of a request from a row of `request`, joined with its lane, or of `history`.
    ///
    /// - Parameters:
    ///   - replacedBy: The id of the request that replaced this one. Default: `nil`.
    ///   - mustBeReadable: Whether values that cannot be decrypted are an error. Default `false`: they are left out,
    ///     because the rest, such as the reason of a hold, is still of use.
    /// - Throws: ``SealFault`` if `mustBeReadable` is set.
    func details(
        of found: StoredRow,
        isOver: Bool,
        replacedBy: String? = nil,
        mustBeReadable: Bool = false
    ) throws -> RequestDetails {
        var fault: SealFault?
        let (row, content) =
            try decrypted(mustBeReadable, &fault) { try opened(found) } ?? (found, RequestContent())
        let sequence: Int64 = try row["seq"]
        let id: String = try row["id"]
        let kept = try decrypted(mustBeReadable, &fault) { try response(to: sequence, of: id) } ?? nil
        let options = try EnqueueOptions(row: row)
        return try RequestDetails(
            summary: QueuedRequest(row: row, isOver: isOver, now: now),
            unreadable: fault.map { "\($0)" },
            options: options,
            headers: HeaderText.decode(content.headers),
            idempotencyKey: content.key?.value,
            replacedBy: replacedBy,
            dependencies: try dependencies(of: sequence),
            webhookID: isOver ? webhookID(reporting: row) : nil,
            timeouts: options.timeouts.extended(by: isOver ? 0 : row["overruns"]),
            busyUntil: busyUntil(row, isOver: isOver),
            attempts: try attempts(of: sequence),
            response: kept
        )
    }

    func storedStates(of ids: [String]) throws -> [String: StoredState] {
        let names = String(decoding: try JSONEncoder().encode(ids), as: UTF8.self)
        var storedStates: [String: StoredState] = [:]
        let found = try cursor(StoreStatements.storedStates, ["ids": names])
        while let row = try found.next() {
            storedStates[try row["id"]] = try StoredState(
                state: row["state"],
                holdReason: (row["hold_reason"] as String?).flatMap(HoldReason.init(rawValue:)),
                status: row["last_status"],
                lastError: row["last_error"],
                submitter: row["submitter"]
            )
        }
        return storedStates
    }

    private func busyUntil(_ row: StoredRow, isOver: Bool) throws -> Date? {
        guard !isOver, let end = try row["busy_until"] as Int64?, end > now.milliseconds else { return nil }
        return Timestamp(milliseconds: end).date
    }

    private func dependencies(of sequence: Int64) throws -> [String] {
        try rows(
            StoreStatements.dependencies,
            [sequence]
        )
        .map { try $0["id"] }
    }

    private func attempts(of sequence: Int64) throws -> [RecordedAttempt] {
        try rows("SELECT * FROM attempt WHERE seq = ? ORDER BY number", [sequence]).map { row in
            try RecordedAttempt(
                number: row["number"],
                started: Timestamp(milliseconds: row["started_at"]).date,
                duration: .microseconds(row["microseconds"] as Int64),
                status: row["status"],
                curlCode: row["curl_code"],
                error: row["error"]
            )
        }
    }

    /// Returns a decrypted value; `nil` if it cannot be decrypted and need not be. Then `first` becomes the reason,
    /// unless it has one.
    private func decrypted<Value>(
        _ mustBeReadable: Bool,
        _ first: inout SealFault?,
        _ decrypt: () throws -> Value
    ) throws -> Value? {
        do { return try decrypt() } catch let fault as SealFault {
            guard !mustBeReadable else { throw fault }
            first = first ?? fault
            return nil
        }
    }

    /// Returns the response to a request; `nil` if none is kept.
    private func response(to sequence: Int64, of id: String) throws -> RecordedResponse? {
        guard let found = try row("SELECT * FROM response WHERE seq = ?", [sequence]) else { return nil }
        let row = try found.openedResponse(by: environment.sealer, of: id)
        return try RecordedResponse(
            status: row["status"],
            headers: HeaderText.decode(row["headers"]),
            body: row["body"],
            isTruncated: row["is_truncated"]
        )
    }
}

// MARK: - Numbers

extension StoreTransaction {
    /// Returns the number of requests in each state. A counter contains the number of all unfinished requests. Only the
    /// few that are not pending are counted here.
    func counts() throws -> QueueCounts {
        var counts = QueueCounts()
        let requests: Int = try row("SELECT requests FROM meta")!["requests"]
        for state in [QueuedRequest.State.blocked, .inflight, .held] {
            counts[state] = try row(
                "SELECT count(*) AS number FROM request WHERE state = '\(state.rawValue)'"
            )!["number"]
        }
        counts[.pending] = requests - counts[.blocked] - counts[.inflight] - counts[.held]
        for row in try rows("SELECT state, count(*) AS number FROM history GROUP BY state") {
            counts[try row["state"]] = try row["number"]
        }
        return counts
    }

    func statistics() throws -> QueueStatistics {
        let meta = try row("SELECT requests, bytes, is_paused FROM meta")!
        let oldest = try row("SELECT created_at FROM request ORDER BY seq LIMIT 1")
        let pages = try row(StoreStatements.pages)!
        let disk = try availableDiskSpace()
        return try QueueStatistics(
            counts: try counts(),
            requests: meta["requests"],
            bytes: meta["bytes"],
            oldest: oldest.map { Timestamp(milliseconds: try $0["created_at"]).date },
            lanes: try row("SELECT count(*) AS number FROM lane WHERE requests > 0")!["number"],
            isPaused: meta["is_paused"],
            pausedLanes: try pausedLanes(in: .all),
            closedLanes: try closedLanes(in: .all),
            completions: try waitingCompletions(),
            databaseBytes: pages["size"],
            freeBytes: disk?.free ?? 0,
            diskReserve: disk?.reserve ?? 0,
            isDiskFull: disk?.isFull(forBody: StoredBody.maximumInlineBytes) ?? false,
            encryption: try keyUse(requests: meta["requests"])
        )
    }

    /// - Parameter requests: The number of unfinished requests.
    private func keyUse(requests: Int) throws -> [QueueStatistics.KeyUse] {
        let sealer = environment.sealer
        guard sealer.mayOpen else { return [] }
        func use(of id: String, by requests: Int) -> QueueStatistics.KeyUse {
            QueueStatistics.KeyUse(
                keyID: id,
                requests: requests,
                isAvailable: sealer.keys?[id] != nil,
                isCurrent: id == sealer.keyID
            )
        }
        var sealed = try rows(StoreStatements.keyUse).map { use(of: try $0["key_id"], by: try $0["number"]) }
        // The key of new requests, or the missing key without which a locked store accepts none.
        if let id = sealer.keyID ?? sealer.lastKeyID, !sealed.contains(where: { $0.keyID == id }) {
            sealed.append(use(of: id, by: 0))
        }
        let finished: Int = try row("SELECT count(*) AS number FROM history")!["number"]
        let plain = requests + finished - sealed.reduce(0) { $0 + $1.requests }
        let unsealed = QueueStatistics.KeyUse(
            keyID: nil,
            requests: plain,
            isAvailable: true,
            isCurrent: false
        )
        return (plain > 0 ? [unsealed] : []) + sealed
    }
}

// MARK: - Rows

/// Builds one page of a list.
private struct PageBuilder {
    private let limit: Int
    private let maximumBytes: Int
    private var requests: [QueuedRequest] = []
    private var last: ListCursor?
    private var bytes = 0
    /// Whether a request did not fit, so that there is another page.
    private(set) var isFull = false

    init(_ query: RequestQuery) {
        limit = min(max(0, query.limit), RequestQuery.maximumLimit)
        maximumBytes = query.maximumBytes
    }

    /// The number of rows to read: one more than the page may still contain, to find out whether there is another page.
    var wanted: Int { limit + 1 - requests.count }

    /// Adds a request if it fits. Returns whether to read further requests.
    mutating func add(_ request: QueuedRequest, _ cursor: ListCursor) -> Bool {
        let sum = bytes + request.listedBytes
        guard requests.count < limit, requests.isEmpty || sum <= maximumBytes else {
            isFull = true
            return false
        }
        requests.append(request)
        (last, bytes) = (cursor, sum)
        return true
    }

    var page: RequestPage {
        RequestPage(requests: requests, next: isFull ? last : nil)
    }
}

extension QueuedRequest {
    /// The approximate size of the request in a listing, in bytes: its strings, and 512 for the rest.
    fileprivate var listedBytes: Int {
        512 + [id, method, url, lane ?? "", tag ?? "", lastError ?? ""].reduce(0) { $0 + $1.utf8.count }
    }
}

extension RequestQuery {
    fileprivate func wants(isFinal: Bool) -> Bool {
        states.map { $0.contains { $0.isFinal == isFinal } } ?? true
    }

    fileprivate var matching: RequestFilter {
        var filter = RequestFilter(states: states, host: host, lane: lane, tag: tag)
        filter.submitter = submitter
        return filter
    }
}

extension RequestFilter {
    /// The SQL condition for a row that matches. The row is one of `history`, or one of `request` joined with its lane.
    var condition: String {
        var conditions: [String] = []
        if states != nil { conditions.append("state IN (SELECT value FROM json_each(:states))") }
        if host != nil { conditions.append("host = :host") }
        if lane != nil { conditions.append("label = :label") }
        if tag != nil { conditions.append("tag = :tag") }
        switch submitter {
        case .user: conditions.append("submitter = :submitter")
        case .process: conditions.append("submitter IS NULL")
        case nil: break
        }
        return conditions.isEmpty ? "1" : conditions.joined(separator: " AND ")
    }

    var arguments: StatementArguments {
        var arguments: StatementArguments = [:]
        if let states {
            let names = states.map { "\"\($0.rawValue)\"" }.joined(separator: ",")
            arguments = arguments &+ ["states": "[\(names)]"]
        }
        if let host { arguments = arguments &+ ["host": host.lowercased()] }
        if let lane { arguments = arguments &+ ["label": lane] }
        if let tag { arguments = arguments &+ ["tag": tag] }
        if case .user(let user) = submitter { arguments = arguments &+ ["submitter": user] }
        return arguments
    }
}
