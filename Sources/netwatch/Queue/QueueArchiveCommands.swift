internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch queue export` command.
struct QueueExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Print all waiting and failed requests, for an import elsewhere.",
        discussion: """
            netwatch queue export >queue.ndjson
            netwatch queue export --no-dead | ssh other netwatch queue import -

            The export contains the bodies. The exported requests stay in the queue: drop those that must not \
            be sent from both queues. The last line is a checksum, so that a truncated or edited export is \
            rejected.

            Exit status: 0 complete, 1 without requests that could not be read, which are reported, 2 failed.
            """
    )

    @Flag(
        name: .customLong("dead"),
        inversion: .prefixedNo,
        help: "Include the requests that failed permanently."
    )
    var includesDead = true

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let isWhole = try await queue.withQueue { client in try await export(from: client) }
        if !isWhole { throw ExitStatus.no.exitCode }
    }

    private func export(from client: ServiceClient) async throws -> Bool {
        var seal = try ExportTrailer()
        var (next, isWhole): (String?, Bool) = (nil, true)
        repeat {
            let after = next.map { "&after=\($0.urlEscaped)" } ?? ""
            let target = "/v1/queue/export?dead=\(includesDead)\(after)"
            let page = try await client.get(target, extra: .seconds(600), as: ControlMessage.ExportPage.self)
            let data = Data(base64Encoded: page.dataBase64) ?? Data()
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
        abstract: "Import an export: all of it, or nothing if anything is wrong.",
        discussion: """
            netwatch queue import queue.ndjson
            ssh other netwatch queue export | netwatch queue import -

            Requests keep their ids, keys and states. Known ids are skipped, so an import can be repeated. \
            Through a service, the file counts towards the queue's limit of 4 GiB; import longer files while no \
            service is running.

            Exit status: 0 all requests are in the queue; 2 nothing was changed: the file is truncated, edited \
            or not an export, the queue is full, or the disk failed.
            """
    )

    @Argument(help: "A file printed by `netwatch queue export`; - for standard input.")
    var file: String

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let reader = file == "-" ? try BodyReader.standardInput() : try BodyReader.opening(file, limit: .max)
        let result = try await queue.withQueue { client, stored in
            if file != "-", let stored { return try await Self.imported(file, into: stored) }
            return try await Self.upload(reader, to: client)
        }
        var parts = ["imported \(CountText.format(result.imported, "request"))"]
        if result.known > 0 { parts.append("skipped \(result.known) known") }
        if result.superseded > 0 { parts.append("skipped \(result.superseded) that newer requests replace") }
        Printer.note(parts.joined(separator: ", "))
    }

    /// Long enough to read the file three times and to write each body to the disk.
    private static let longest: Duration = .seconds(86_400)

    private static func upload(
        _ reader: BodyReader,
        to client: ServiceClient
    ) async throws(CommandError) -> ControlMessage.Imported {
        let upload = BodyUpload(client: client, isImport: true)
        let staged = try await upload.upload(then: reader)
        do {
            return try await upload.retryingLonger(for: staged).post(
                "/v1/queue/import",
                ControlMessage.Import(staged: staged),
                within: longest,
                as: ControlMessage.Imported.self
            )
        } catch {
            await upload.remove(staged)
            throw error
        }
    }

    private static func imported(
        _ file: String,
        into queue: StoredQueue
    ) async throws -> ControlMessage.Imported {
        do {
            return try await queue.importRequests(from: file)
        } catch let error as QueueError {
            throw CommandError(opening: error)
        }
    }
}
