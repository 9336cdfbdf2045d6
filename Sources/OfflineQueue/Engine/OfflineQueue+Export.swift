public import Foundation
internal import NetwatchEventLoop

/// Export of requests.
extension OfflineQueue {
    /// Returns a page of an export. The export contains all unfinished requests in order, followed by those that were
    /// given up. Requests that are being sent are exported as a restart would find them. Changes nothing.
    ///
    /// An export consists of all pages, followed by ``ExportTrailer/finish()``. Requests that are enqueued during the
    /// export may be included, and those that finish during it may be left out.
    ///
    /// - Parameters:
    ///   - cursor: The position to continue from; `nil` at the beginning.
    ///   - includingDead: Whether to include requests that were given up. Default `true`.
    ///   - limit: The approximate size of a page in bytes. It may be exceeded by one request's line, or by 64 KiB of a
    ///     body. Default 1 MiB.
    /// - Throws: ``QueueError`` of the store.
    public nonisolated func exportPage(
        after cursor: ExportCursor? = nil,
        includingDead: Bool = true,
        limit: Int = 1 << 20
    ) async throws -> ExportPage {
        var page = PageWriter(limit: limit, spool: store.spool)
        if cursor == nil { page.begin(includingDead: includingDead) }
        let next = try await page.fill(
            from: store.archive,
            after: cursor ?? .beginning,
            includingDead: includingDead
        )
        return ExportPage(data: page.data, next: next, leftOut: page.leftOut)
    }

    /// Exports everything at once.
    ///
    /// - Parameters:
    ///   - includingDead: As for ``exportPage(after:includingDead:limit:)``.
    ///   - write: Called with each piece of the export, in order.
    /// - Returns: The requests that could not be exported.
    /// - Throws: ``QueueError`` of the store, and any error that `write` throws.
    public nonisolated func export(
        includingDead: Bool = true,
        to write: (Data) async throws -> Void
    ) async throws -> [ExportPage.LeftOut] {
        var trailer = try ExportTrailer()
        var leftOut: [ExportPage.LeftOut] = []
        var cursor: ExportCursor?
        repeat {
            let page = try await exportPage(after: cursor, includingDead: includingDead)
            trailer.add(page.data)
            try await write(page.data)
            leftOut += page.leftOut
            cursor = page.next
        } while cursor != nil
        try await write(trailer.finish())
        return leftOut
    }
}

extension ExportCursor {
    static let beginning = ExportCursor(part: .waiting, position: 0)

    func nextPart(includingDead: Bool) -> ExportCursor? {
        part == .waiting && includingDead ? ExportCursor(part: .dead, position: 0) : nil
    }
}
