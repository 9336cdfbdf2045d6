public import Foundation
internal import NetwatchEventLoop

/// What waits can be taken elsewhere.
extension OfflineQueue {
    /// A page of an export of all requests on their way, in their order, and of those that were given up. What is
    /// being sent is exported as a restart would find it. Changes nothing.
    ///
    /// The pages and ``ExportSeal/finish()`` behind the last one make the export. Requests that come in meanwhile may
    /// be in it, those that are over meanwhile may not.
    ///
    /// - Parameters:
    ///   - cursor: Where to go on; `nil` at the beginning.
    ///   - includingDead: Whether those that were given up are exported, too. Default `true`.
    ///   - limit: How many bytes a page has, about: one request's line, or 64 KiB of a body, may come on top.
    ///     Default 1 MiB.
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
    ///   - write: Is given the export piece by piece.
    /// - Returns: What could not be exported.
    /// - Throws: ``QueueError`` of the store, and what `write` throws.
    public nonisolated func export(
        includingDead: Bool = true,
        to write: (Data) async throws -> Void
    ) async throws -> [ExportPage.LeftOut] {
        var seal = try ExportSeal()
        var leftOut: [ExportPage.LeftOut] = []
        var cursor: ExportCursor?
        repeat {
            let page = try await exportPage(after: cursor, includingDead: includingDead)
            seal.add(page.data)
            try await write(page.data)
            leftOut += page.leftOut
            cursor = page.next
        } while cursor != nil
        try await write(seal.finish())
        return leftOut
    }
}

extension ExportCursor {
    static let beginning = ExportCursor(part: .waiting, position: 0)

    func nextPart(includingDead: Bool) -> ExportCursor? {
        part == .waiting && includingDead ? ExportCursor(part: .dead, position: 0) : nil
    }
}
