internal import ArgumentParser
internal import NetwatchService

/// `netwatch queue`
struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "See and move what the service keeps.",
        discussion: """
            netwatch queue list
            netwatch queue flush
            """,
        subcommands: [QueueListCommand.self, QueueFlushCommand.self]
    )
}

/// `netwatch queue list`
struct QueueListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List requests: those on their way in their order, then finished ones, newest first.",
        discussion: """
            netwatch queue list
            netwatch queue list -n 1000 --format json
            """
    )

    @Option(name: [.customShort("n"), .long], help: "How many to list, 1 to 1000.")
    var limit = 100

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object per line.")
    var format = OutputFormat.text

    @OptionGroup var service: ServiceOptions

    mutating func run() async throws {
        let list = try await ServiceClient(path: service.socket)
            .get("/v1/requests?limit=\(limit)", as: ControlMessage.List.self)
        switch format {
        case .json: for entry in list.requests { Printer.json(entry, with: ControlMessage.encoder) }
        case .text: QueueTable(list).print()
        }
    }
}

/// `netwatch queue flush`
struct QueueFlushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flush",
        abstract: "Try everything that waits now.",
        discussion: """
            netwatch queue flush

            Waiting times are passed over once, for every server; flushing often makes delivery slower.
            """
    )

    @OptionGroup var service: ServiceOptions

    mutating func run() async throws {
        let flushed = try await ServiceClient(path: service.socket)
            .post("/v1/queue/flush", as: ControlMessage.Flushed.self)
        Printer.note("trying \(flushed.requests) \(flushed.requests == 1 ? "request" : "requests")")
    }
}
