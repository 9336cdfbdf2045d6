internal import ArgumentParser
internal import ClientCore
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

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
        case _ where format == .json:
            Printer.json(ControlMessage.Versioned(shown), with: ControlMessage.encoder)
        case .whole(let details): Printer.rows(RequestReport(details).lines, indent: RequestReport.indent)
        case .part(let part):
            Printer.rows(RequestReport.lines(part.request), indent: RequestReport.indent)
        }
    }

    private func printBody(of details: RequestDetails) throws(CommandError) {
        guard let response = details.response else {
            if let reason = details.unreadable, details.summary.finished != nil {
                let hint = "without the service, `--encryption-key` names the file with the key"
                throw CommandError(
                    .unknown,
                    Printer.printable("the response cannot be read: \(reason)"),
                    hint: hint
                )
            }
            let request = details.summary
            throw CommandError(.no, "`\(request.id)` is \(request.state.rawValue) and has no response")
        }
        Printer.bytes(response.body)
        if response.isTruncated {
            Printer.warning(
                "the response is incomplete: it was longer than 64 KiB, its connection was closed early, or it could "
                    + "not be searched for the credential"
            )
        }
    }
}

/// The details of a request for people.
struct RequestReport {
    private let details: RequestDetails
    private let now: Date

    init(_ details: RequestDetails, now: Date = Date()) {
        self.details = details
        self.now = now
    }

    var lines: [String] {
        requestLines + attemptLines + responseLines
    }

    /// Returns the lines for a request of another user.
    static func lines(_ request: ControlMessage.Redacted) -> [String] {
        [
            line("id", request.id), line("state", request.state.rawValue), line("host", request.host),
            line("hidden", "the rest, because the request belongs to another user"),
        ]
    }

    private var requestLines: [String] {
        let request = details.summary
        let order = request.isFIFO ? "in order" : "priority \(request.priority)"
        let rows: [(String, String?)] = [
            ("id", request.id),
            ("state", stateText),
            ("request", "\(request.method) \(request.url)"),
            ("body", request.bodyBytes > 0 ? ByteText.format(request.bodyBytes) : nil),
            ("lane", "\(request.lane ?? "no label"), \(order)"),
            ("error", errorText),
            ("waits", WaitText.description(request, isBusy: details.busyUntil != nil)),
            ("held", HoldText.description(request.holdReason, request.reason)),
            ("next try", request.nextTry.map(moment)),
            ("closed", request.laneClosure.map { "until \(moment($0.until))" }),
            ("window", request.windowOpening.map { "opens \(moment($0))" }),
            ("key", details.idempotencyKey),
            ("replaced", details.replacedBy.map { "by \($0)" }),
            ("replaces", details.options.replaceKey.map { "waiting requests with `--replace-key \($0)`" }),
            ("sent", details.options.isAtMostOnce ? "at most once" : nil),
            ("expects", details.options.expectation == .success ? nil : "\(details.options.expectation)"),
            ("auth", request.credential.map { "credential \($0)" }),
            ("tag", request.tag),
            ("from", request.submitter.map { "user \($0)" }),
            ("on done", webhookText),
            ("reports", details.webhookOf.map { "the end of \($0)" }),
            ("only", details.options.constraints.isEmpty ? nil : "\(details.options.constraints)"),
            ("timeouts", timeoutText),
            ("protocol", details.options.httpVersion.map { "HTTP/\($0.rawValue)" }),
            ("statuses", statusText),
            ("busy", busyText),
            ("depends", details.dependencies.isEmpty ? nil : details.dependencies.joined(separator: " ")),
            ("created", moment(request.created)),
            ("due", request.due.map(moment)),
            ("expires", request.expires.map(moment)),
            ("finished", request.finished.map(moment)),
            ("hidden", details.unreadable.map { "header fields, idempotency key, body or response: \($0)" }),
        ]
        return rows.compactMap { name, text in text.map { Self.line(name, $0) } }
            + details.headers.map { Self.line("header", "\($0.name): \($0.value)") }
    }

    private var stateText: String {
        let request = details.summary
        // The reason of a held request begins with `held`, so the state is omitted.
        let state = request.holdReason == nil ? request.state.rawValue : nil
        let reason = request.reason == request.state.rawValue ? nil : request.reason
        return [state, reason].compactMap(\.self).joined(separator: ": ")
    }

    /// The last error of a request that is held for another reason; `nil` if the state contains it.
    private var errorText: String? {
        let request = details.summary
        guard request.holdReason != nil, let error = request.lastError else { return nil }
        return request.reason?.contains(error) == true ? nil : error
    }

    private var webhookText: String? {
        details.options.onDone.map { webhook in
            let parts = [
                "POST \(webhook.url)", webhook.credential.map { "credential \($0)" },
                details.webhookID.map { "request \($0)" },
            ]
            return parts.compactMap(\.self).joined(separator: ", ")
        }
    }

    private var busyText: String? {
        details.busyUntil.map {
            "an attempt timed out and the server may still be processing it; the next attempt waits until \(moment($0))"
        }
    }

    private var statusText: String? {
        let statuses = details.options.statusRules
        let rules = [("retried after", statuses.retry), ("given up after", statuses.dead)]
        let texts = rules.compactMap { name, statuses in
            statuses.isEmpty ? nil : "\(name) \(StatusRanges.text(statuses))"
        }
        return texts.isEmpty ? nil : texts.joined(separator: "; ")
    }

    /// The timeouts of the next attempt; `nil` for a finished request.
    private var timeoutText: String? {
        guard details.summary.finished == nil else { return nil }
        let timeouts = details.timeouts
        let rows = [
            ("connect", timeouts.connect), ("response", timeouts.response), ("total", timeouts.total),
        ]
        return rows.compactMap { name, timeout in timeout.map { "\(name) \(DurationText.format($0))" } }
            .joined(separator: ", ")
    }

    private var attemptLines: [String] {
        let request = details.summary
        let postponed = request.deferrals > 0 ? " counted, \(request.deferrals) not counted" : ""
        let earlier = earlierAttempts > 0 ? ", \(earlierAttempts) before the count was reset" : ""
        return [Self.line("attempts", "\(request.attempts)\(postponed)\(earlier)")]
            + details.attempts.map { attempt in
                let duration = DurationText.format(attempt.duration)
                let text = attempt.error ?? attempt.status.map { "HTTP \($0)" } ?? ""
                return Self.line("", "\(attempt.number)  \(attempt.started.rfc3339)  \(duration)  \(text)")
            }
    }

    /// The number of attempts before a retry or a change of the credential, which reset the count.
    private var earlierAttempts: Int {
        let request = details.summary
        // An attempt is counted when it begins, and listed when it has ended.
        let running = request.state == .inflight ? 1 : 0
        return (details.attempts.last?.number ?? 0) - (request.attempts + request.deferrals - running)
    }

    private var responseLines: [String] {
        guard let response = details.response else { return [] }
        let length = ByteText.format(Int64(response.body.count))
        let cut = response.isTruncated ? ", truncated" : ""
        return [Self.line("response", "HTTP \(response.status), \(length)\(cut)")]
            + response.headers.map { Self.line("", "\($0.name): \($0.value)") }
    }

    private func moment(_ date: Date) -> String {
        let distance = date.timeIntervalSince(now)
        let text = DurationText.format(.seconds(abs(distance)))
        return "\(date.rfc3339)  (\(distance > 0 ? "in \(text)" : "\(text) ago"))"
    }

    /// The column in which the texts begin.
    static let indent = 10

    private static func line(_ name: String, _ text: String) -> String {
        name.padded(to: indent - 2) + "  " + text
    }
}
