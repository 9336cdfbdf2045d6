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

            A body of more than 64 KiB is uploaded in pieces before its request is accepted. An upload whose \
            client is gone is removed after ten minutes, and earlier when there are 64 or the queue's bytes are \
            used up. --clear removes those that are named, or all; a client that is still uploading fails.

            Exit status: 0 listed or removed, 1 no upload has such an id.
            """
    )

    @Argument(help: "With --clear: the ids of uploads.")
    var ids: [String] = []

    @Flag(help: "Remove them.")
    var clear = false

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object per line.")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if !clear, !ids.isEmpty { throw ValidationError("ids go with `--clear`") }
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
                let idle = DurationText.words(.seconds(body.idleSeconds))
                Printer.line("\(body.id)  \(ByteText.words(body.size))  last piece \(idle) ago")
            }
        }
        if format == .text { Printer.note(Self.words(bodies.count, bodies.reduce(0) { $0 + $1.size })) }
    }

    private func remove(_ client: ServiceClient) async throws(CommandError) {
        var removed = ControlMessage.RemovedBodies(bodies: 0, bytes: 0)
        for target in ids.isEmpty ? ["/v1/bodies"] : ids.map({ "/v1/bodies/\($0.urlEscaped)" }) {
            let answer = try await remove(target, client)
            removed.bodies += answer.bodies
            removed.bytes += answer.bytes
        }
        switch format {
        case .json: Printer.json(removed, with: ControlMessage.encoder)
        case .text: Printer.note("removed \(Self.words(removed.bodies, removed.bytes))")
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

    private static func words(_ count: Int, _ bytes: Int64) -> String {
        "\(count) \(count == 1 ? "body" : "bodies"), \(ByteText.words(bytes))"
    }
}
