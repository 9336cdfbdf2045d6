internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

/// Encrypts stored requests with the current key. Each call changes a bounded number of rows, in one transaction.
extension SQLiteQueueStore {
    package func reseal(after cursor: ResealCursor) async throws -> ResealCursor? {
        guard !environment.sealer.isLocked, let keys = environment.sealer.keys else { return nil }
        var next = cursor
        next.restored = cursor.restored ?? environment.restored.count
        let page = try await read { try $0.resealPage(after: cursor, keys.current.id) }
        guard let last = page.last else { return end(of: next) }
        next.position = last
        guard !page.rows.isEmpty else { return next }
        let resealed = try await reseal(page, keys)
        next.postponed += resealed.postponed
        next.problem = next.problem ?? resealed.problem
        return next
    }

    /// Returns where the pass continues after the last row of a table; `nil` at its end. If a dead request was retried
    /// during the pass, it may have left `history` before its row was examined. The pass then starts again.
    private func end(of cursor: ResealCursor) -> ResealCursor? {
        var next = cursor
        next.position = 0
        if cursor.table == .request {
            next.table = .history
        } else {
            guard environment.restored.count != cursor.restored else { return nil }
            (next.table, next.restored) = (.request, nil)
        }
        return next
    }

    private func reseal(_ page: StoreTransaction.ResealPage, _ keys: KeyRing) async throws
        -> StoreTransaction.Resealed
    {
        let copies = await copies(of: page.rows)
        var unused = Set(copies.values.compactMap(\.name))
        do {
            let resealed = try await write(rows: page.rows.count, bytes: page.bytes, isAtomic: true) {
                try $0.reseal(page.rows, copies: copies, keys)
            }
            unused.subtract(resealed.names)
            await spool.remove(Array(unused))
            return resealed
        } catch {
            // After a disk error, it is unknown whether the stored rows refer to the copies. The next start removes
            // those that no row refers to.
            if (error as? QueueError)?.endsStore == false { await spool.remove(Array(unused)) }
            throw error
        }
    }

    /// Copies the plaintext bodies of rows into encrypted files.
    private func copies(of rows: [ResealRow]) async -> [Int64: ResealCopy] {
        var copies: [Int64: ResealCopy] = [:]
        for row in rows {
            guard let body = row.plainBody else { continue }
            do throws(QueueError) {
                copies[row.sequence] = try await spool.copy(body).map(ResealCopy.made) ?? .absent
            } catch {
                copies[row.sequence] = .failed(error)
            }
        }
        return copies
    }
}

/// A row that is not encrypted with the current key.
struct ResealRow: Sendable {
    let table: ResealCursor.Table
    let sequence: Int64
    /// The spooled body whose file is not encrypted; `nil` if there is none.
    let plainBody: SpooledBody?
}

/// The encrypted copy of a plaintext body.
enum ResealCopy: Sendable {
    case made(SpooledBody)
    /// The body's file is missing, so that nothing of it can be encrypted.
    case absent
    /// The body could not be copied now, for example because the disk is full.
    case failed(QueueError)

    /// The name of the copy's file; `nil` if there is none.
    var name: String? {
        if case .made(let body) = self { body.name } else { nil }
    }
}

// MARK: - Rows to encrypt

extension StoreTransaction {
    struct ResealPage: Sendable {
        /// The position of the last row that was examined; `nil` at the end of the table.
        var last: Int64?
        var rows: [ResealRow] = []
        /// The size of the rows without spooled bodies.
        var bytes: Int64 = 0
    }

    private static let examinedRows = 512
    private static let resealedRows = 64
    /// The approximate maximum size of the rows of one transaction: 1 MiB.
    private static let resealedBytes: Int64 = 1 << 20

    /// Returns the next rows of a table that are not encrypted with the key.
    func resealPage(after cursor: ResealCursor, _ keyID: String) throws -> ResealPage {
        var page = ResealPage()
        let found = try self.cursor(Self.pageQuery(of: cursor.table), [cursor.position, Self.examinedRows])
        while page.rows.count < Self.resealedRows, page.bytes < Self.resealedBytes, let row = try found.next()
        {
            page.last = try row.place("position", after: page.last ?? cursor.position)
            let ids: [String?] = try [row["key_id"], row["response_key_id"]]
            guard ids.contains(where: { $0 != keyID }) else { continue }
            let plain = try row["has_file"] ? plainFile(of: row) : nil
            page.bytes += try row.isNull("body_file") ? row["size"] : 0
            page.rows.append(ResealRow(table: cursor.table, sequence: try row["seq"], plainBody: plain))
        }
        return page
    }

    /// Returns the spooled body of a row; `nil` if there is none, if it is encrypted, or if the row is damaged.
    private func plainFile(of row: StoredRow) throws -> SpooledBody? {
        guard row.isNull("key_id"), row.isNull("body_key"), let name = try row["body_file"] as String? else {
            return nil
        }
        return SpooledBody(row: name, size: try row["body_bytes"], digest: try? RequestContent(row).digest)
    }

    /// The query does not read inline bodies. A row without a response counts as one whose response has the row's key.
    private static func pageQuery(of table: ResealCursor.Table) -> String {
        // Only the SHA-256 of a plaintext file is needed, and the content may be long.
        let content =
            "iif(\(table == .history ? "history." : "")key_id IS NULL AND body_file IS NOT NULL, content, NULL)"
        let columns = "size, \(content) AS content, body_bytes, body_file, body_key"
        return switch table {
        case .request:
            """
            SELECT seq AS position, seq, key_id, key_id AS response_key_id, 1 AS has_file, \(columns) FROM request
            WHERE seq > ? ORDER BY seq LIMIT ?
            """
        case .history:
            """
            SELECT position, seq, history.key_id AS key_id, is_whole AS has_file,
            iif(response.seq IS NULL, history.key_id, response.key_id) AS response_key_id, \(columns)
            FROM history LEFT JOIN response USING (seq) WHERE position > ? ORDER BY position LIMIT ?
            """
        }
    }
}

// MARK: - Encrypting

extension StoreTransaction {
    /// The result of encrypting the rows of a page.
    struct Resealed: Sendable {
        /// The names of the copied bodies that rows now refer to.
        var names: Set<String> = []
        /// The number of rows that a later pass must encrypt.
        var postponed = 0
        /// The first error, in words for users.
        var problem: String?

        /// Records that a row stays as it is.
        fileprivate mutating func postpone(_ error: (any Error)? = nil) {
            postponed += 1
            note(error)
        }

        fileprivate mutating func note(_ error: (any Error)?) {
            problem = problem ?? error.map { ($0 as? QueueError)?.message ?? "\($0)" }
        }
    }

    /// Encrypts rows with the current key. A row that cannot be encrypted stays as it is, and the others are encrypted.
    ///
    /// - Parameter copies: Encrypted copies of plaintext files, by the number of the row.
    mutating func reseal(
        _ rows: [ResealRow],
        copies: [Int64: ResealCopy],
        _ keys: KeyRing
    ) throws -> Resealed {
        var resealed = Resealed()
        // Otherwise freed pages would keep the plaintext.
        try database.execute(sql: "PRAGMA secure_delete = ON")
        defer { try? database.execute(sql: "PRAGMA secure_delete = FAST") }
        for row in rows {
            do {
                try reseal(row, copies[row.sequence], keys, &resealed)
                if row.table == .history { try resealResponse(to: row.sequence) }
            } catch let fault as SealFault where fault.isKeyMissing {
                // The missing key was reported when the store was opened. The next start with the key encrypts the row.
            } catch let fault as SealFault where fault.isDamage {
                // No later pass can read the value either.
                resealed.note(fault)
            } catch let error where error is SealFault || error is SystemError || error is QueueError {
                resealed.postpone(error)
            }
        }
        return resealed
    }

    /// Every value is encrypted before the first one is written, so that an error leaves the whole row as it was.
    private mutating func reseal(
        _ candidate: ResealRow,
        _ copy: ResealCopy?,
        _ keys: KeyRing,
        _ resealed: inout Resealed
    ) throws {
        let table = candidate.table.rawValue
        let found = try row(
            "SELECT \(table).*, bytes FROM \(table) LEFT JOIN body USING (seq) WHERE \(table).seq = ? AND key_id IS NOT ?",
            [candidate.sequence, keys.current.id]
        )
        guard let found else { return }
        let row = try found.opened(by: environment.sealer)
        guard let file = try bodyFile(of: row, candidate, copy, keys, &resealed) else { return }
        let (sealer, id): (Sealer, String) = try (environment.sealer, row["id"])
        let values = try row.sealed([.content], by: sealer, of: id)
        let bytes = try row.sealed([.body], by: sealer, of: id)
        _ = try sealerForWriting()
        try execute(
            "UPDATE \(table) SET content = ?, body_file = ?, body_key = ?, key_id = ? WHERE seq = ?",
            StatementArguments(values) + [file.name, file.key, keys.current.id, candidate.sequence]
        )
        if !row.isNull("bytes") {
            try execute(
                "UPDATE body SET bytes = ? WHERE seq = ?",
                StatementArguments(bytes) + [candidate.sequence]
            )
        }
        guard let copied = copy?.name, copied == file.name, let plain = candidate.plainBody else { return }
        freedFiles.append(plain.name)
        resealed.names.insert(copied)
    }

    /// The columns of a row that name the file of its body.
    private struct BodyFile {
        var name: String?
        /// The key of the file, encrypted; `nil` if the file is not encrypted.
        var key: Data?
    }

    /// Returns the file that a row will refer to; `nil` if the row must stay as it is.
    private func bodyFile(
        of row: StoredRow,
        _ candidate: ResealRow,
        _ copy: ResealCopy?,
        _ keys: KeyRing,
        _ resealed: inout Resealed
    ) throws -> BodyFile? {
        let file = BodyFile(name: try row["body_file"], key: try row["body_key"])
        guard let plain = candidate.plainBody else {
            guard let name = file.name, let sealed = file.key else { return file }
            let key = try FileKey.opening(sealed, of: name, keys)
            return BodyFile(name: name, key: try key.sealedAgain(for: name, keys))
        }
        switch copy {
        case .absent?: return file
        // An attempt has read the name of the file, and may be about to open it.
        case .made(let copy)? where try file.name == plain.name && row["state"] as String != "inflight":
            return BodyFile(name: copy.name, key: copy.sealedKey)
        case .failed(let error)?: resealed.postpone(error)
        case .made?, nil: resealed.postpone()
        }
        return nil
    }

    private func resealResponse(to sequence: Int64) throws {
        let found = try row(
            "SELECT response.*, id FROM response JOIN history USING (seq) WHERE response.seq = ? AND response.key_id IS NOT ?",
            [sequence, environment.sealer.keyID]
        )
        guard let found else { return }
        let (sealer, id): (Sealer, String) = try (environment.sealer, found["id"])
        let row = try found.openedResponse(by: sealer, of: id)
        let values = try row.sealed(SealedColumn.ofResponse, by: sealer, of: id)
        _ = try sealerForWriting()
        try execute(
            "UPDATE response SET \(SealedColumn.ofResponse.assignments), key_id = ? WHERE seq = ?",
            StatementArguments(values) + [sealer.keyID, sequence]
        )
    }
}
