internal import Foundation
internal import GRDB

extension SQLiteQueueStore {
    package func enqueue(_ requests: [NewRequest], now: Timestamp) async throws -> [EnqueuedRequest] {
        let bytes = requests.reduce(0) { $0 + $1.request.body.count }
        return try await batcher.write(rows: requests.count, bytes: bytes) { [limits] database in
            try requests.map { try Self.enqueue($0, now: now, limits: limits, database) }
        }
    }

    private static func enqueue(
        _ new: NewRequest,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws -> EnqueuedRequest {
        if let known = try known(new.id, now: now, limits: limits, database) { return known }
        let lane = try laneID(of: new.lane, database)
        let isBehind = try database.cachedStatement(
            sql: "SELECT EXISTS (SELECT 1 FROM request WHERE lane_id = ?)"
        )
        let isBehindOthers = try Bool.fetchOne(isBehind, arguments: [lane])!
        try insert(new, lane: lane, now: now, database)
        return EnqueuedRequest(
            lane: try self.lane(lane, now: now, limits: limits, database),
            isNew: true,
            isBehindOthers: isBehindOthers,
            idempotencyKey: new.idempotencyKey,
            state: .pending,
            status: nil,
            lastError: nil
        )
    }

    private static func insert(_ new: NewRequest, lane: Int64, now: Timestamp, _ database: Database) throws {
        let row = try database.cachedStatement(
            sql: """
                INSERT INTO request
                (id, lane_id, state, next_at, created_at, method, url, headers, idempotency_key)
                VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?)
                """
        )
        try row.execute(arguments: [
            new.id, lane, now.milliseconds, now.milliseconds, new.request.method, new.request.url,
            try HeaderText.encode(new.request.headers), new.idempotencyKey,
        ])
        guard !new.request.body.isEmpty else { return }
        let body = try database.cachedStatement(sql: "INSERT INTO body (seq, bytes) VALUES (?, ?)")
        try body.execute(arguments: [database.lastInsertedRowID, new.request.body])
    }

    /// The request that has the id already, on its way or finished.
    private static func known(
        _ id: String,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws -> EnqueuedRequest? {
        let columns = "lane_id, state, idempotency_key, last_status, last_error"
        let find = try database.cachedStatement(
            sql: """
                SELECT \(columns) FROM request WHERE id = :id
                UNION ALL SELECT \(columns) FROM history WHERE id = :id
                """
        )
        guard let row = try Row.fetchOne(find, arguments: ["id": id]) else { return nil }
        return EnqueuedRequest(
            lane: try lane(row["lane_id"], now: now, limits: limits, database),
            isNew: false,
            isBehindOthers: false,
            idempotencyKey: row["idempotency_key"],
            state: QueuedRequest.State(rawValue: row["state"])!,
            status: row["last_status"],
            lastError: row["last_error"]
        )
    }
}

/// Header lines as the store keeps them: a JSON array of pairs.
enum HeaderText {
    static func encode(_ headers: [QueueRequest.Header]) throws -> String {
        String(decoding: try JSONEncoder().encode(headers.map { [$0.name, $0.value] }), as: UTF8.self)
    }

    static func decode(_ text: String) throws -> [QueueRequest.Header] {
        try JSONDecoder().decode([[String]].self, from: Data(text.utf8))
            .map { QueueRequest.Header(name: $0[0], value: $0[1]) }
    }
}
