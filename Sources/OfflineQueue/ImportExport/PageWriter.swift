internal import Foundation
internal import NetwatchEventLoop

/// Writes one page of an export.
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

    /// Adds requests to the page until it is full or there are no more.
    ///
    /// - Returns: The position of the next page; `nil` if this is the last page.
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
                if let offset = try await write(row, from: cursor.bodyBytes, of: archive) {
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

    /// Ends a request whose body was exported in part by the previous page, but which has finished since then.
    private mutating func giveUpPartial(_ cursor: inout ExportCursor) {
        data += ArchiveFormat.void
        (cursor.partial, cursor.bodyBytes) = (0, 0)
    }

    /// Writes a request, or continues its body at an offset.
    ///
    /// - Returns: The number of body bytes that were written, on all pages, if the page became full before the body was
    ///   complete; `nil` if the request is complete or was left out.
    private mutating func write(
        _ row: ArchivedRow,
        from offset: Int64,
        of archive: any ArchiveRows
    ) async throws -> Int64? {
        switch row.content {
        case .success((let request, .spooled(let body))):
            switch try await file(of: body, in: row, of: archive, isBegun: offset > 0) {
            case .open(let file): return try await write(request, body, file, from: offset)
            case .fault(let fault): leaveOut(row.id, "\(fault)", isBegun: offset > 0)
            // An export may leave out a request that finishes during the export.
            case .finished: if offset > 0 { data += ArchiveFormat.void }
            }
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
        _ file: any SpoolFile,
        from start: Int64
    ) async throws -> Int64? {
        if start == 0 { data += try ArchiveFormat.request(request) }
        var offset = start
        while offset < body.size {
            // Every page must contain at least one chunk, so that the export makes progress.
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

    private enum OpenedFile {
        case open(any SpoolFile)
        case fault(SpooledBodyFault)
        /// The request has finished since its row was read, and its body was removed.
        case finished
    }

    /// Opens the file of a row's body.
    ///
    /// If the file is missing, the row is read again: the conversion to another encryption key may have replaced the
    /// file meanwhile.
    private func file(
        of body: SpooledBody,
        in row: ArchivedRow,
        of archive: any ArchiveRows,
        isBegun: Bool
    ) async throws -> OpenedFile {
        var body = body
        while true {
            let fault: SpooledBodyFault
            do throws(SpooledBodyFault) { return .open(try await open(body, isBegun: isBegun)) } catch {
                fault = error
            }
            guard fault == .missing else { return .fault(fault) }
            guard let current = try await currentBody(of: row, in: archive) else { return .finished }
            guard current.name != body.name else { return .fault(fault) }
            body = current
        }
    }

    private func currentBody(of row: ArchivedRow, in archive: any ArchiveRows) async throws -> SpooledBody? {
        let before = ExportCursor(part: row.cursor.part, position: row.cursor.position - 1)
        let found = try await archive.rows(after: before, bytes: 1).first
        guard let found, found.cursor.position == row.cursor.position, found.id == row.id,
            case .spooled(let body) = try found.content.get().body
        else { return nil }
        return body
    }

    /// Opens the file of a body. The file is verified only when the body begins.
    ///
    /// If the file changes after that, the import detects it by the body's hash.
    private func open(_ body: SpooledBody, isBegun: Bool) async throws(SpooledBodyFault) -> any SpoolFile {
        guard isBegun else { return try await spool.open(body).file }
        return try await spool.openUnverified(body)
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
