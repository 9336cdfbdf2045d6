internal import ArgumentParser
internal import ClientCore
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch send` command.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a request now, or when the network is back.",
        discussion: """
            netwatch send https://api.example.com/orders --json @order.json
            netwatch send -X DELETE https://api.example.com/orders/7 --fifo
            netwatch send https://files.example.com/day.tar -T day.tar \\
                --ttl 30d --wait=1m
            netwatch send https://example.com/ping --queue never --check-status

            The service writes the request to disk and tries it immediately. If the host is unreachable or the \
            server fails, the service tries again until the time of --ttl has passed. The id of the request is printed \
            on standard output.

            With a plain http URL, the page of a captive portal cannot be distinguished from a response of the \
            server, unless -H 'Accept: …' or --expect states what is expected. --expect recognizes the server by \
            a header field (header=NAME or header=NAME=VALUE), the beginning of the body (body=TEXT) or a member \
            of a JSON body (json=/POINTER, json=PATH.TO or either with =VALUE). Write a comma in a value as '\\,'.

            Exit status: 0 delivered or safely accepted; 1 given up (dead), cancelled or replaced by a newer \
            request with the same --replace-key (superseded); 2 not accepted, or unknown whether accepted: then the \
            command can safely be repeated with the same --id; 64 wrong arguments; 69 service not running; 75 service \
            busy, nothing accepted; 77 permission denied; 78 libcurl cannot be used.

            With --wait: 0 delivered; 75 also if the request was accepted and its id printed, but it is not \
            finished yet. With --check-status: 3, 4 or 5 if the last response was HTTP 3xx, 4xx or 5xx.
            """
    )

    @Argument(help: "An http or https URL.")
    var url: String

    @Option(
        name: [.customShort("X"), .customLong("request")],
        help: "The method; case-sensitive. Default GET; POST with -d or --json; PUT with -T."
    )
    var method: String?

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A header field, like 'Name: value'. Repeatable."
    )
    var headers: [String] = []

    @OptionGroup var body: BodyOptions

    @OptionGroup var delivery: DeliveryOptions

    @OptionGroup var attempts: AttemptOptions

    @Option(help: "The Idempotency-Key. By default one is generated for methods that are not idempotent.")
    var idempotencyKey: String?

    @OptionGroup var expectations: ExpectationOptions

    @Option(
        name: .customLong("wait"),
        help: .init(
            "Wait until the request is finished; with --wait=30s for at most that time.",
            valueName: "duration"
        ),
        transform: WaitLimit.argument
    )
    var wait: WaitLimit?

    @Flag(help: "Exit with 3, 4 or 5 if the last response was HTTP 3xx, 4xx or 5xx.")
    var checkStatus = false

    @Option(name: .shortAndLong, help: "The output format: text, or json (a single JSON object).")
    var format = OutputFormat.text

    @OptionGroup var service: ServiceOptions

    func validate() throws {
        if idempotencyKey == "" { throw ValidationError("`--idempotency-key` must not be empty") }
        if delivery.choice == .never, wait != nil {
            throw ValidationError("`--queue never` cannot be combined with `--wait`")
        }
        do throws(QueueError) {
            if let method { try RequestChecks.checkSpelling(ofMethod: method) }
        } catch {
            throw ValidationError("`-X`: \(error.message)")
        }
    }

    mutating func run() async throws {
        try CommandError.requireUsableTransport()
        let sent = delivery.choice == .never ? try await sendDirectly() : try await sendThroughQueue()
        let status = exitStatus(sent)
        if status != .yes { throw status.exitCode }
    }

    // MARK: With and without the queue

    private func sendThroughQueue() async throws -> ControlMessage.Sent {
        let client = ServiceClient(path: try service.path())
        var message = try message()
        // Wrong arguments are reported even if the service is not running.
        if let refusal = message.refusal { throw CommandError(refusal) }
        if !delivery.dependency.isEmpty { message.options.dependencies = try await dependencies(by: client) }
        let upload = BodyUpload(client: client)
        try await upload.attach(body.input, to: &message)
        var sent: ControlMessage.Sent
        do {
            sent = try await accepted(message, by: upload.retryingLonger(for: message.staged))
        } catch {
            await upload.remove(message.staged)
            throw error
        }
        // A generated id is only known if this command itself has sent it, and repeated it after a lost response.
        if delivery.id == nil { sent.known = nil }
        guard let wait, sent.state == "queued", let id = sent.id else {
            show(sent)
            return sent
        }
        // Printed before the wait, so that a user who interrupts the wait has the id.
        if format == .text { show(id) }
        let known = sent.known
        let status = format == .text ? StatusLine() : nil
        sent = try await CompletionWait(client: client, limit: wait, status: status).result(of: id)
        sent.known = known
        show(sent, withID: format == .json)
        if format == .text, sent.state == "queued" { Printer.note(Self.unfinishedNote) }
        return sent
    }

    private func dependencies(by client: ServiceClient) async throws(CommandError) -> [String] {
        do {
            return try await IDResolver(client: client).ids(meantBy: delivery.dependency)
        } catch {
            // An id of `--dependency` is wrong, and nothing was sent.
            guard error.status == .no else { throw error }
            throw CommandError(.usage, "`--dependency`: \(error.message)", hint: error.hint)
        }
    }

    private func accepted(
        _ message: ControlMessage.Send,
        by client: ServiceClient
    ) async throws(CommandError) -> ControlMessage.Sent {
        do {
            return try await client.post(
                "/v1/requests",
                message,
                isRepeatable: true,
                within: attempts.serviceResponse(sending: message.staged?.size ?? 0),
                as: ControlMessage.Sent.self
            )
        } catch {
            guard error.isOutcomeUnknown, let id = message.options.id else { throw error }
            throw error.with(
                hint: "the request may have been accepted; repeating the command with `--id \(id)` is safe"
            )
        }
    }

    private func sendDirectly() async throws(CommandError) -> ControlMessage.Sent {
        var head = try head()
        if let idempotencyKey {
            head.headers.append(.init(name: TransferRequest.Header.idempotencyKey, value: idempotencyKey))
        }
        var options = attempts.options
        options.expectation = try expectations.expectation() ?? .success
        let sent = try await DirectRequest(head, body: body.input, options: options).send()
        show(sent)
        return sent
    }

    // MARK: Message

    private func message() throws(CommandError) -> ControlMessage.Send {
        var message = ControlMessage.Send(try head())
        if let idempotencyKey { message.options.idempotencyKey = .value(idempotencyKey) }
        message.options.expectation = try expectations.expectation() ?? .success
        delivery.apply(to: &message)
        attempts.apply(to: &message.options)
        // The wait is a separate call with its own time limit. This call only stores the request.
        if wait != nil { message.queue = .always }
        return message
    }

    /// The request without its body.
    private func head() throws(CommandError) -> QueueRequest {
        QueueRequest(
            method: method ?? body.defaultMethod,
            url: url,
            headers: body.completing(try fields()).map { QueueRequest.Header(name: $0[0], value: $0[1]) }
        )
    }

    private func fields() throws(CommandError) -> [[String]] {
        var fields: [[String]] = []
        for header in headers { fields.append(try Self.field(header)) }
        return fields
    }

    private static func field(_ text: String) throws(CommandError) -> [String] {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            throw CommandError(
                .usage,
                "\(Printer.quoted(text)) is not a header field",
                hint: "accepted: `Name: value`"
            )
        }
        return [String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces)]
    }

    // MARK: Result

    private func show(_ id: String) {
        Printer.data(id, hint: "the request was accepted: `netwatch queue show \(id)` shows its state")
    }

    private func show(_ sent: ControlMessage.Sent, withID: Bool = true) {
        if format == .json { return Printer.json(sent, with: ControlMessage.encoder) }
        if withID, let id = sent.id, sent.state != "dropped" { show(id) }
        for line in SendReport.lines(sent) { Printer.note(Printer.printable(line)) }
    }

    /// Printed if `--wait` ends before the request is finished.
    private static let unfinishedNote =
        "the wait ended before the request was finished; the request stays in the queue"

    private func exitStatus(_ sent: ControlMessage.Sent) -> ExitStatus {
        switch sent.state {
        case "queued": wait == nil ? .yes : .tryAgain
        case "dropped": .unknown
        case "delivered": responseStatus(sent) ?? .yes
        default: responseStatus(sent) ?? .no
        }
    }

    private func responseStatus(_ sent: ControlMessage.Sent) -> ExitStatus? {
        switch sent.status.map({ $0 / 100 }) {
        case 3 where checkStatus: .redirected
        case 4 where checkStatus: .clientError
        case 5 where checkStatus: .serverError
        default: nil
        }
    }
}
