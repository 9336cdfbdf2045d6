internal import ArgumentParser
internal import Foundation
internal import NetwatchService

/// `netwatch send`
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a request, now or as soon as the network is back.",
        discussion: """
            netwatch send https://api.example.com/orders -d @order.json -H 'Content-Type: application/json'
            netwatch send -X DELETE https://api.example.com/orders/7 --fifo

            The service writes the request to its disk, tries it at once, and keeps trying for as long as \
            the network is away. The request's id is printed on standard output.

            A portal's page on a plain http URL can only be told from the server's answer if -H 'Accept: …' \
            says what is expected.

            Exit status: 0 delivered or safely accepted, 1 given up, 2 not known to be accepted, 64 wrong \
            arguments, 69 service not running, 77 not permitted. After 2 the same --id can be sent again \
            without harm.
            """
    )

    @Argument(help: "An http or https URL.")
    var url: String

    @Option(
        name: [.customShort("X"), .customLong("request")],
        help: "The method. Default GET, with -d POST."
    )
    var method: String?

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A header, as 'Name: value'. Repeatable."
    )
    var headers: [String] = []

    @Option(name: .shortAndLong, help: "The body; @FILE reads a file, @- standard input. At most 1 MiB.")
    var data: String?

    @Flag(help: "Keep the order: requests to the same server go out one by one, as they came.")
    var fifo = false

    @Option(help: "Set apart from other requests to the same server.")
    var lane: String?

    @Option(help: "The Idempotency-Key. Default for methods that are not idempotent: one is made.")
    var idempotencyKey: String?

    @Option(help: "An id of your own; sending it again changes nothing. Default: one is made.")
    var id: String?

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object.")
    var format = OutputFormat.text

    @OptionGroup var service: ServiceOptions

    mutating func run() async throws {
        let client = ServiceClient(path: service.socket)
        let sent = try await client.post("/v1/requests", try message(), as: ControlMessage.Sent.self)
        print(sent)
        if sent.state == "dead" { throw ExitStatus.no.exitCode }
    }

    private func print(_ sent: ControlMessage.Sent) {
        if format == .json { return Printer.json(sent, with: ControlMessage.encoder) }
        Printer.data(sent.id)
        let details = [sent.status.map { "HTTP \($0)" }, sent.reason].compactMap(\.self)
        Printer.note(([sent.state] + details).joined(separator: ": "))
    }

    private func message() throws -> ControlMessage.Send {
        var message = ControlMessage.Send(url: url)
        message.method = method ?? (data == nil ? "GET" : "POST")
        message.headers = try headers.map(Self.header)
        message.bodyBase64 = try data.map { try RequestBody.read($0).base64EncodedString() }
        message.fifo = fifo
        message.lane = lane
        message.idempotencyKey = idempotencyKey
        message.id = id
        return message
    }

    private static func header(_ text: String) throws(CommandError) -> [String] {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw CommandError(.usage, "`\(text)` is not a header", hint: "give it as `Name: value`")
        }
        return [String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces)]
    }
}

/// Options of every command that talks to the service.
struct ServiceOptions: ParsableArguments {
    @Option(help: "The service's control socket. Default $NETWATCH_SOCKET, else the usual place.")
    var socket: String?
}
