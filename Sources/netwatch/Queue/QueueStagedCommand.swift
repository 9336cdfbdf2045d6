internal import ArgumentParser
internal import NetwatchService

/// The `netwatch queue staged` command.
struct QueueStagedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "staged",
        abstract: "List uploads that no request uses yet, or remove them.",
        discussion: """
            netwatch queue staged
            netwatch queue staged --clear
            netwatch queue staged --clear 01a1fd77-5b52-70f7-a8f1-b9fb1907155b

            A body of more than 64 KiB is uploaded in pieces before its request is accepted. An upload that \
            receives no piece is removed after ten minutes, or after ten seconds if there are 64 uploads or the \
            queue's byte limit is reached. --clear removes the given uploads, or all of them. A client that is \
            still uploading then fails.

            Exit status: 0 listed or removed; 1 if one of the ids does not belong to an upload.
            """
    )

    @Argument(help: "With --clear: the ids of the uploads to remove.")
    var ids: [String] = []

    @Flag(help: "Remove uploads instead of listing them.")
    var clear = false

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object per line.")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if !clear, !ids.isEmpty { throw ValidationError("ids require `--clear`") }
    }

    mutating func run() async throws {
        try await queue.withQueue { client in
            if clear { try await remove(client) } else { try await list(client) }
        }
    }

    private func list(_ client: ServiceClient) async throws(CommandError) {
        let bodies = try await client.get("/v1/bodies", as: ControlMessage.StagedBodies.self).bodies
        for body in bodies {
            switch format {
            case .json: Printer.json(body, with: ControlMessage.encoder)
            case .text:
                let idle = DurationText.format(.seconds(body.idleSeconds))
                Printer.line("\(body.id)  \(ByteText.format(body.size))  last piece \(idle) ago")
            }
        }
        if format == .text { Printer.note(Self.summary(bodies.count, bodies.reduce(0) { $0 + $1.size })) }
    }

    private func remove(_ client: ServiceClient) async throws(CommandError) {
        var removed = ControlMessage.RemovedBodies(bodies: 0, bytes: 0)
        for target in ids.isEmpty ? ["/v1/bodies"] : ids.map({ "/v1/bodies/\($0.urlEscaped)" }) {
            let response = try await remove(target, client)
            removed.bodies += response.bodies
            removed.bytes += response.bytes
        }
        switch format {
        case .json: Printer.json(removed, with: ControlMessage.encoder)
        case .text: Printer.note("removed \(Self.summary(removed.bodies, removed.bytes))")
        }
    }

    private func remove(
        _ target: String,
        _ client: ServiceClient
    ) async throws(CommandError) -> ControlMessage.RemovedBodies {
        do {
            return try await client.delete(target, as: ControlMessage.RemovedBodies.self)
        } catch {
            guard error.code == "unknown_staged_body" else { throw error }
            throw CommandError(.no, error.message)
        }
    }

    private static func summary(_ count: Int, _ bytes: Int64) -> String {
        "\(CountText.format(count, "upload")), \(ByteText.format(bytes))"
    }
}
