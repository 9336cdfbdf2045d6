internal import ArgumentParser
internal import Foundation
internal import NetwatchService

/// The `netwatch queue show` command.
struct QueueShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all that is known of one request: its attempts, and the answer.",
        discussion: """
            netwatch queue show 01a1fd77-5b52
            netwatch queue show 01a1fd77-5b52 --body | jq .

            Exit status: 0 shown, 1 no request, or more than one, has such an id.
            """
    )

    @Argument(help: "The id, or its first 8 or more characters.")
    var id: String

    @Flag(help: "Print the body of the answer instead, as it came; its first 64 KiB are kept.")
    var body = false

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object.")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if id.isEmpty { throw ValidationError("the id must not be empty") }
        if body, format == .json { throw ValidationError("`--body` excludes `--format json`, which has it") }
    }

    mutating func run() async throws {
        let details = try await queue.withQueue { client in
            let id = try await IDResolver(client: client).id(meantBy: id)
            return try await client.get("/v1/requests/\(id.urlEscaped)", as: ControlMessage.Details.self)
        }
        if body { return try printBody(of: details) }
        switch format {
        case .json: Printer.json(details, with: ControlMessage.encoder)
        case .text: for line in RequestReport(details).lines { Printer.line(line) }
        }
    }

    private func printBody(of details: ControlMessage.Details) throws(CommandError) {
        guard let response = details.response else {
            throw CommandError(.no, "`\(details.request.id)` is \(details.request.state), and has no answer")
        }
        Printer.bytes(Data(base64Encoded: response.bodyBase64) ?? Data())
        if response.truncated {
            Printer.warning("the answer was longer, or its connection ended before it did")
        }
    }
}
