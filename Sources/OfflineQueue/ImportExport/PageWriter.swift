internal import Foundation
internal import NetwatchEventLoop

/// Fills one page of an export with lines.
struct PageWriter {
    private let limit: Int
    private let spool: BodySpool
    private(set) var data = Data()
    private(set) var leftOut: [ExportPage.LeftOut] = []

    init(limit: Int, spool: BodySpool) {
        self.limit = max(1, limit)
        self.spool = spool
    }

    private var isFull: Bool { data.count >= limit }

    mutating func begin(includingDead: Bool) {
        data += ArchiveFormat.header(created: .now, includingDead: includingDead)
    }

    /// Returns the position of the next page; `nil` after the last.
    mutating func fill(
        from archive: any ArchiveRows,
        after start: ExportCursor,
        includingDead: Bool
    ) async throws -> ExportCursor? {
        var cursor = start
        while true {
            let rows = try await archive.rows(after: cursor, bytes: max(1, limit - data.count))
            if cursor.partial != 0, rows.first?.cursor.position != cursor.partial { giveUpPartial(&cursor) }
            for row in rows {
                if let offset = try await write(row, from: cursor.bodyBytes) {
                    (cursor.partial, cursor.bodyBytes) = (row.cursor.position, offset)
                    return cursor
                }
                cursor = row.cursor
                if isFull { return cursor }
            }
            guard rows.isEmpty else { continue }
            guard let next = cursor.nextPart(includingDead: includingDead) else { return nil }
            cursor = next
        }
    }

    /// Ends a request whose body was being exported, but which is finished by now.
    private mutating func giveUpPartial(_ cursor: inout ExportCursor) {
        data += ArchiveFormat.void
        (cursor.partial, cursor.bodyBytes) = (0, 0)
    }

    /// Writes a request, or continues its body. If the page is full before the body is complete, returns the number of
    /// body bytes written so far. Otherwise returns `nil`.
    private mutating func write(_ row: ArchivedRow, from offset: Int64) async throws -> Int64? {
        switch row.content {
        case .success((let request, .spooled(let body))): return try await write(request, body, from: offset)
        case .success((let request, let body)): try write(request, body)
        case .failure(let error): leaveOut(row.id, error.message, isBegun: offset > 0)
        }
        return nil
    }

    private mutating func leaveOut(_ id: String, _ reason: String, isBegun: Bool) {
        if isBegun { data += ArchiveFormat.void }
        leftOut.append(ExportPage.LeftOut(id: id, reason: reason))
    }

    private mutating func write(_ request: ArchivedRequest, _ body: StoredBody) throws {
        data += try ArchiveFormat.request(request)
        guard case .inline(let bytes) = body else { return }
        for offset in stride(from: 0, to: bytes.count, by: ArchiveFormat.chunkBytes) {
            data += ArchiveFormat.chunk(bytes.dropFirst(offset).prefix(ArchiveFormat.chunkBytes))
        }
    }
}

// MARK: - Spooled bodies

extension PageWriter {
    private mutating func write(
        _ request: ArchivedRequest,
        _ body: SpooledBody,
        from start: Int64
    ) async throws -> Int64? {
        let file: any SpoolFile
        do throws(SpooledBodyFault) {
            file = try await open(body, isBegun: start > 0)
        } catch {
            leaveOut(request.id, "\(error)", isBegun: start > 0)
            return nil
        }
        if start == 0 { data += try ArchiveFormat.request(request) }
        var offset = start
        while offset < body.size {
            // Every page must make progress.
            if isFull, offset > start { return offset }
            guard let chunk = try await chunk(of: file, at: offset, of: body) else {
                leaveOut(request.id, "\(SpooledBodyFault.changed("truncated"))", isBegun: true)
                return nil
            }
            data += ArchiveFormat.chunk(chunk)
            offset += Int64(chunk.count)
        }
        return nil
    }

    /// Verifies the file only when its body begins. Later changes are detected by the hash when the export is read.
    private func open(_ body: SpooledBody, isBegun: Bool) async throws(SpooledBodyFault) -> any SpoolFile {
        guard isBegun else { return try await spool.open(body).file }
        do throws(SystemError) {
            return try await spool.openFile { files throws(SystemError) in try files.open(body.name) }
        } catch {
            throw .unreadable(error)
        }
    }

    private func chunk(of file: any SpoolFile, at offset: Int64, of body: SpooledBody) async throws -> Data? {
        let count = Int(min(Int64(ArchiveFormat.chunkBytes), body.size - offset))
        do throws(SystemError) {
            let chunk = try await spool.read(file, at: offset, count: count)
            return chunk.count == count ? chunk : nil
        } catch {
            throw QueueError(.spoolFailed, "a body cannot be read: \(error)")
        }
    }
}
