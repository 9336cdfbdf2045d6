internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch queue export` command.
struct QueueExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Print all unfinished and dead requests, to import them into another queue.",
        discussion: """
            netwatch queue export >queue.ndjson
            netwatch queue export --no-dead | ssh other netwatch queue import -

            The export includes the bodies of the requests. The exported requests also stay in this queue: drop \
            them here if the other queue sends them. The last line is a checksum, by which an import detects a \
            truncated or edited export.

            Programs can register completion handlers for finished requests with the library. An export does not \
            record which requests wait for such a handler. With --state-dir, the command prints how many there are.

            Exit status: 0 if the export is complete, 1 if some requests could not be read (they are reported), \
            2 if the export failed.
            """
    )

    @Flag(
        name: .customLong("dead"),
        inversion: .prefixedNo,
        help: "Include dead requests, which the queue has given up."
    )
    var includesDead = true

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let isWhole = try await queue.withQueue { client in
            let isWhole = try await export(from: client)
            if queue.mayHaveHandlers { await noteCompletions(of: client) }
            return isWhole
        }
        if !isWhole { throw ExitStatus.no.exitCode }
    }

    /// Prints how many finished requests wait for their completion handlers, which only this queue can call.
    ///
    /// The export is complete by then, so an error here is only a note.
    private func noteCompletions(of client: ServiceClient) async {
        let statistics: QueueStatistics
        do {
            statistics = try await client.get("/v1/queue/stats", as: QueueStatistics.self)
        } catch {
            let message = "it is unknown whether finished requests wait for a completion handler: \(error)"
            return Printer.note(message)
        }
        for waiting in statistics.completions {
            let count = CountText.format(waiting.count, "finished request")
            let message =
                "a program that uses the library has not yet received \(count) with the tag `\(waiting.tag)`; the export "
                + "does not record this"
            Printer.note(Printer.printable(message))
        }
    }

    private func export(from client: ServiceClient) async throws -> Bool {
        var seal = try ExportTrailer()
        var (next, isWhole): (String?, Bool) = (nil, true)
        repeat {
            let after = next.map { "&after=\($0.urlEscaped)" } ?? ""
            let target = "/v1/queue/export?dead=\(includesDead)\(after)"
            let page = try await client.get(target, extra: .seconds(600), as: ControlMessage.ExportPage.self)
            let data = JSONText.printable(Data(base64Encoded: page.dataBase64) ?? Data())
            seal.add(data)
            Printer.bytes(data)
            for request in page.leftOut {
                isWhole = false
                Printer.warning(Printer.printable("`\(request.id)` was not exported: \(request.reason)"))
            }
            next = page.next
        } while next != nil
        Printer.bytes(seal.finish())
        return isWhole
    }
}

/// The `netwatch queue import` command.
struct QueueImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import the requests of an export.",
        discussion: """
            netwatch queue import queue.ndjson
            ssh other netwatch queue export | netwatch queue import -

            Requests keep their ids, keys and states. Requests that the queue already knows are skipped, so an \
            import can be repeated. If an id belongs to another request, the request of the export is not \
            imported, and a warning names it. An export whose requests wait for each other is refused. If the \
            service is running, the export counts towards the queue's limit of 4 GiB. Import a longer file while \
            the service is not running. With `--state-dir` or $NETWATCH_STATE_DIR and an empty directory, the import \
            creates the queue. Otherwise the queue must exist: `netwatch serve` creates it.

            Exit status: 0 if all requests are in the queue. 1 if some were not imported, because their ids belong \
            to other requests. 2 if nothing was changed: the file is truncated, edited or not an export, its \
            requests wait for each other, the queue is full, or the disk failed. 64 if the file cannot be read.
            """
    )

    @Argument(help: "A file printed by `netwatch queue export`; - for standard input.")
    var file: ArgumentBytes

    @Flag(
        help: """
            Keep the users who submitted the requests. An id must belong to the same user on both machines. Without \
            this flag, the requests belong to the user who imports them.
            """
    )
    var keepSubmitters = false

    @OptionGroup var queue: QueueOptions

    func run() async throws {
        let isStandardInput = file == .standardInput
        let reader = try isStandardInput ? BodyReader.standardInput() : BodyReader.opening(file, limit: .max)
        let result = try await queue.withQueue(mayCreate: true) { client, stored in
            if !isStandardInput, let stored { return try await imported(from: reader, into: stored) }
            return try await upload(reader, to: client)
        }
        var parts = ["imported \(CountText.format(result.imported, "request"))"]
        if result.known > 0 { parts.append("skipped \(result.known) known") }
        if result.superseded > 0 { parts.append("skipped \(result.superseded) that newer requests replace") }
        try report(result, parts)
    }

    /// Prints what was imported, and what was not.
    ///
    /// - Throws: The exit status 1 if requests were not imported.
    private func report(_ result: ControlMessage.Imported, _ parts: [String]) throws {
        let (conflicts, count) = (result.conflicts ?? [], result.conflictCount ?? 0)
        for conflict in conflicts {
            Printer.warning(Printer.printable("`\(conflict.id)` was not imported: \(conflict.reason)"))
        }
        if count > conflicts.count {
            Printer.warning("\(count - conflicts.count) more requests were not imported")
        }
        Printer.note(parts.joined(separator: ", "))
        if count > 0 { throw ExitStatus.no.exitCode }
    }

    private func upload(
        _ reader: BodyReader,
        to client: ServiceClient
    ) async throws(CommandError) -> ControlMessage.Imported {
        let upload = BodyUpload(client: client, isImport: true)
        let staged = try await upload.upload(then: reader)
        do {
            return try await upload.retryingLonger(for: staged).post(
                "/v1/queue/import",
                ControlMessage.Import(staged: staged, keepSubmitters: keepSubmitters ? true : nil),
                // The service reads the file three times and writes each body to the disk.
                within: ServiceRequest.longestCall,
                as: ControlMessage.Imported.self
            )
        } catch {
            await upload.remove(staged)
            throw error
        }
    }

    private func imported(
        from reader: BodyReader,
        into queue: StoredQueue
    ) async throws -> ControlMessage.Imported {
        defer { withExtendedLifetime(reader) {} }
        do {
            return try await queue.importRequests(from: reader.path, keepingSubmitters: keepSubmitters)
        } catch let error as QueueError where error.code == .bodyFileUnusable {
            // The path may be the one of the open descriptor, which means nothing to people.
            let message = error.message.replacing(reader.path, with: "\(file)")
            throw CommandError(.usage, Printer.printable(message))
        } catch let error as QueueError {
            throw CommandError(opening: error)
        }
    }
}
