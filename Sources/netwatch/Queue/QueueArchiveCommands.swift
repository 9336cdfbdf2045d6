internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch queue export` command.
struct QueueExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Print all that waits, and what was given up, to be imported elsewhere.",
        discussion: """
            netwatch queue export >queue.ndjson
            netwatch queue export --no-dead | ssh other netwatch queue import -

            Bodies are in it, and the queue keeps everything: drop what must not be sent from both. The last \
            line seals the export, so that one cut short or edited is refused.

            Exit status: 0 all of it, 1 without requests that could not be read, which are named, 2 cut short.
            """
    )

    @Flag(name: .customLong("dead"), inversion: .prefixedNo, help: "With those that were given up.")
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
                Printer.warning(Printer.printable("`\(request.id)` is left out: \(request.reason)"))
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
        abstract: "Bring in an export: all of it, or nothing if anything is wrong with it.",
        discussion: """
            netwatch queue import queue.ndjson
            ssh other netwatch queue export | netwatch queue import -

            Requests keep their ids, keys and states; known ids change nothing, so it can be repeated. Through \
            a service the file counts against the queue's limit of 4 GiB; longer files are imported while no \
            service runs.

            Exit status: 0 all is in the queue, 2 nothing was changed: the file is cut short, edited or no \
            export, the queue is full, or the disk failed.
            """
    )

    @Argument(help: "A file that `netwatch queue export` printed, - for standard input.")
    var file: String

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let reader = file == "-" ? try BodyReader.standardInput() : try BodyReader.opening(file, limit: .max)
        let result = try await queue.withQueue { client, stored in
            if file != "-", let stored { return try await Self.imported(file, into: stored) }
            return try await Self.upload(reader, to: client)
        }
        var words = ["imported \(result.imported) \(result.imported == 1 ? "request" : "requests")"]
        if result.known > 0 { words.append("\(result.known) known") }
        if result.superseded > 0 { words.append("\(result.superseded) left out for newer ones") }
        Printer.note(words.joined(separator: ", "))
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
            return try await upload.persisting(for: staged).post(
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
