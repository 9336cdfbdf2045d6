public import Foundation
internal import NetwatchEventLoop

/// The export of requests.
extension OfflineQueue {
    /// Returns one page of an export. The queue is not changed.
    ///
    /// An export contains all unfinished requests in the order of acceptance, followed by the requests that were given
    /// up. It consists of all pages and a last line, which ``ExportTrailer/finish()`` returns.
    ///
    /// A request in flight is exported as `pending`, or as `held` if it must not be sent twice. Requests that are
    /// enqueued during the export may be included. Requests that finish during the export may be left out.
    ///
    /// - Parameters:
    ///   - cursor: ``ExportPage/next`` of the previous page. Default `nil`: the first page.
    ///   - includingDead: Whether to include requests that were given up. Default `true`.
    ///   - limit: The approximate size of the page in bytes. Default 1 MiB. The page may exceed it by one request with
    ///     up to 64 KiB of its body.
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

    /// Writes a complete export, page by page.
    ///
    /// - Parameters:
    ///   - includingDead: Whether to include requests that were given up. Default `true`.
    ///   - write: A function that is called with each piece of the export, in order.
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
