internal import ArgumentParser
internal import Foundation
internal import NetwatchService

/// The `netwatch queue show` command.
struct QueueShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show one request with its attempts and its response.",
        discussion: """
            netwatch queue show 01a1fd77-5b52
            netwatch queue show 01a1fd77-5b52 --body | jq .

            The header fields, idempotency key and response of an encrypted request are printed only with its \
            key. Without it, `hidden` is printed in their place.

            Exit status: 0 if the request was printed; 1 if no request or more than one matches the id, or with \
            --body if there is no response; 2 with --body if the response cannot be decrypted; 77 with --body if \
            the request belongs to another user. Of such a request only the id, the state and the host are printed.
            """
    )

    @Argument(help: "The id, or at least its first 8 characters.")
    var id: String

    @Flag(
        help:
            "Print only the body of the response, as the queue has stored it: at most its first 64 KiB."
    )
    var body = false

    @Option(name: .shortAndLong, help: "The output format: text, or json (a single JSON object).")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if id.isEmpty { throw ValidationError("the id must not be empty") }
        if body, format == .json {
            throw ValidationError("`--body` cannot be combined with `--format json`, which includes the body")
        }
    }

    mutating func run() async throws {
        let shown = try await queue.withQueue { client in
            let id = try await IDResolver(client: client).id(meantBy: id)
            return try await client.get("/v1/requests/\(id.urlEscaped)", as: ControlMessage.Shown.self)
        }
        switch shown {
        case .whole(let details) where body: try printBody(of: details)
        case .part(let part) where body:
            throw CommandError(.noPermission, "`\(part.request.id)` belongs to another user")
        case _ where format == .json: Printer.json(shown, with: ControlMessage.encoder)
        case .whole(let details): Printer.rows(RequestReport(details).lines, indent: RequestReport.indent)
        case .part(let part):
            Printer.rows(RequestReport.lines(part.request), indent: RequestReport.indent)
        }
    }

    private func printBody(of details: ControlMessage.Details) throws(CommandError) {
        guard let response = details.response else {
            if let reason = details.unreadable, details.request.finished != nil {
                let hint = "without the service, `--encryption-key` names the file with the key"
                throw CommandError(
                    .unknown,
                    Printer.printable("the response cannot be read: \(reason)"),
                    hint: hint
                )
            }
            throw CommandError(.no, "`\(details.request.id)` is \(details.request.state) and has no response")
        }
        Printer.bytes(Data(base64Encoded: response.bodyBase64) ?? Data())
        if response.truncated {
            Printer.warning(
                "the response is incomplete: it was longer than 64 KiB, its connection was closed early, or it could "
                    + "not be searched for the credential"
            )
        }
    }
}
