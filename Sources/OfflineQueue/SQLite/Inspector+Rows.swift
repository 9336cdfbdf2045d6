internal import Dispatch
internal import Foundation
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop

extension Inspector {
    struct Page: Sendable {
        var last: Int64
        var count = 0
        var bytes = 0
        var bodyBytes: Int64 = 0
        /// The damage because of which the rows after ``last`` cannot be read.
        var damage: String?
        var faults: [(id: String, reason: String)] = []
        /// The requests whose encryption key is missing.
        var sealed: [(id: String, reason: String)] = []
        var bodies: [(id: String, position: Int64, body: InspectedFile)] = []
    }

    /// The file of a body.
    enum InspectedFile: Sendable {
        case readable(SpooledBody)
        /// Without the key of its request, only the existence and the size of a file can be checked.
        case sealed(name: String, size: Int64)

        var name: String {
            switch self {
            case .readable(let body): body.name
            case .sealed(let name, _): name
            }
        }
    }

    /// Reads and checks the next page of rows, which is empty at the end.
    func rows(_ part: ExportCursor.Part, after position: Int64) async throws -> Page {
        try await read { [sealer] database -> Page in
            var page = Page(last: position)
            do {
                let sql = part == .waiting ? Self.waitingRows : Self.deadRows
                let rows = try database.cursor(sql, [position, Self.page])
                while !page.isFull, let row = try rows.next() {
                    page.last = try row.place("position", after: page.last)
                    page.bytes += row.approximateSize
                    page.check(row, sealer)
                }
            } catch let error where StoreFault.isDamage(error) {
                page.damage = StoreFault.words(error)
            }
            return page
        }
    }

    static let waitingRows = """
        SELECT \(ArchivedRequest.columns(of: "request")), seq AS position, label, mode, bytes
        FROM request NOT INDEXED CROSS JOIN (SELECT id AS lane, label, mode FROM lane) ON lane = lane_id LEFT JOIN body USING (seq)
        WHERE seq > ? ORDER BY seq LIMIT ?
        """

    static let deadRows = """
        SELECT \(ArchivedRequest.columns(of: "history")), position, label, mode, bytes
        FROM history NOT INDEXED LEFT JOIN body USING (seq)
        WHERE position > ? AND state = 'dead' AND is_whole = 1 ORDER BY position LIMIT ?
        """

    /// Returns the query for the row at a position, if it still refers to a spool file of a name.
    static func rowNaming(_ part: ExportCursor.Part) -> String {
        switch part {
        case .waiting: "SELECT 1 FROM request NOT INDEXED WHERE seq = ? AND body_file = ?"
        // The name remains in the row after the body was removed.
        case .dead: "SELECT 1 FROM history NOT INDEXED WHERE position = ? AND body_file = ? AND is_whole <> 0"
        }
    }
}

extension Inspector.Page {
    var isFull: Bool {
        bytes >= Inspector.pageBytes || bodyBytes >= Inspector.pageBodyBytes
    }

    mutating func check(_ row: StoredRow, _ sealer: Sealer) {
        count += 1
        let id = (try? row["id"]) ?? "number \((try? row["position"] as Int64) ?? 0)"
        do {
            let row = try row.opened(by: sealer)
            let content = try RequestContent(row)
            var request = try ArchivedRequest(row, content)
            let body = try StoredBody(whole: row, content.digest)
            if case .spooled(let file) = body {
                bodies.append((id, last, .readable(file)))
                bodyBytes += file.size
            }
            request.body = try ArchivedRequest.Body(body)
            _ = try request.validated()
        } catch let fault as SealFault where fault.isKeyMissing {
            sealed.append((id, "\(fault)"))
            checkSealedBody(of: row, id)
        } catch {
            faults.append((id, QueueError(reading: error).message))
        }
    }

    /// Checks the size of an encrypted body without its key.
    mutating func checkSealedBody(of row: StoredRow, _ id: String) {
        do {
            let size: Int64 = try row["body_bytes"]
            if let name = try row["body_file"] as String? {
                return bodies.append((id, last, .sealed(name: name, size: size)))
            }
            let (length, overhead) = try (
                (row["bytes"] as Data?)?.count ?? 0, size > 0 ? EncryptionKey.overhead : 0
            )
            guard Int64(length - overhead) != size else { return }
            faults.append((id, "the body has \(length - overhead) bytes instead of \(size)"))
        } catch {
            faults.append((id, QueueError(reading: error).message))
        }
    }
}

extension QueueVerification {
    var isDatabaseDamaged: Bool { findings.contains { $0.kind == .database } }

    mutating func add(_ faults: [(id: String, reason: String)]) {
        for fault in faults { found(.request, fault.id, fault.reason) }
    }

    /// Verifies a spooled body. A fault is ignored if no row refers to the body any more, because its request ended
    /// during the check.
    ///
    /// - Parameter isUsed: Returns whether a row refers to the spool file of this name.
    mutating func check(
        _ found: (id: String, position: Int64, body: Inspector.InspectedFile),
        in bodies: InspectedBodies,
        isUsed: (String) async throws -> Bool
    ) async throws {
        let fault: SpooledBodyFault?
        switch found.body {
        case .readable(let body):
            files += 1
            fault = try await bodies.verify(body)
        case .sealed(let name, let size): fault = await bodies.spool.verifySealed(name, size: size)
        }
        guard let fault else { return }
        guard try await isUsed(found.body.name) else { return }
        let kind: Finding.Kind =
            switch fault {
            case .missing: .bodyMissing
            case .changed: .bodyChanged
            case .unreadable: .bodyUnreadable
            }
        self.found(kind, found.id, "\(fault)")
    }
}
