internal import ArgumentParser
internal import ClientCore
internal import NetwatchService
internal import OfflineQueue

/// The options that set the body of a request.
struct BodyOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: "The body: text, @FILE for a file, or @- for standard input. At most 512 MiB."
    )
    var data: [ArgumentBytes] = []

    @Option(
        help:
            "Like -d. Sets Content-Type and Accept to application/json, unless -H sets them. Does not check the body."
    )
    var json: [ArgumentBytes] = []

    @Option(
        name: [.customShort("T"), .customLong("upload-file")],
        help:
            "A file to send as the body; - for standard input. The command reads it, not the service."
    )
    var uploadFile: [ArgumentBytes] = []

    func validate() throws {
        let names = data.map { _ in "`-d`" } + json.map { _ in "`--json`" } + uploadFile.map { _ in "`-T`" }
        guard names.count > 1 else { return }
        throw ValidationError(
            "\(names.joined(separator: " and ")) cannot be combined: a request has one body"
        )
    }

    var input: BodyInput? {
        uploadFile.first.map(BodyInput.init(file:)) ?? (data.first ?? json.first).map(BodyInput.init(data:))
    }

    /// The method if none is given, as in curl(1).
    var defaultMethod: String {
        if !uploadFile.isEmpty { return "PUT" }
        return input == nil ? "GET" : "POST"
    }

    /// Adds the header fields that `--json` implies, unless they are given.
    func completing(_ headers: [[String]]) -> [[String]] {
        guard !json.isEmpty else { return headers }
        let names = Set(headers.map { $0[0].lowercased() })
        let usual = [["Content-Type", "application/json"], ["Accept", "application/json"]]
        return headers + usual.filter { !names.contains($0[0].lowercased()) }
    }
}

/// The options for how each attempt is made: its timeouts and its version of HTTP.
struct AttemptOptions: ParsableArguments {
    private static let timeout = Duration.argument(in: AttemptTimeouts.range, "1ms to 24h")

    private static func version(_ text: String) throws -> HTTPVersion {
        guard let version = HTTPVersion(rawValue: text) else {
            let accepted = HTTPVersion.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("\(Printer.quoted(text)) is not a version of HTTP; accepted: \(accepted)")
        }
        return version
    }

    @Option(
        help: .init(
            """
            The maximum time for the name lookup, the connection and TLS. Default 15s, or the service's \
            `queue.connect-timeout`.
            """,
            valueName: "duration"
        ),
        transform: Self.timeout
    )
    var connectTimeout: Duration?

    @Option(
        help: .init(
            """
            The maximum time from the last byte of the request to the head of the response. Default 5m, or the \
            service's `queue.response-timeout`.
            """,
            valueName: "duration"
        ),
        transform: Self.timeout
    )
    var responseTimeout: Duration?

    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: .init(
            "The maximum total time of an attempt. Default 10m plus the response timeout; more for large bodies.",
            valueName: "duration"
        ),
        transform: Self.timeout
    )
    var total: Duration?

    @Option(
        help: .init(
            """
            The version of HTTP over TLS: 1.1, or 2 if the server offers it. 2 requires an https URL. Default 2, or the \
            `http-version` that the service's configuration sets for the host.
            """,
            valueName: "version"
        ),
        transform: Self.version
    )
    var httpVersion: HTTPVersion?

    func apply(to options: inout EnqueueOptions) {
        options.timeouts.connect = connectTimeout ?? options.timeouts.connect
        options.timeouts.response = responseTimeout ?? options.timeouts.response
        (options.timeouts.total, options.httpVersion) = (total, httpVersion)
    }

    /// Returns how long the service may take to respond: until the first attempt ends, and a second one that confirms a
    /// refusal, plus 30 s for the delay before it and for the disk. Without options, the configuration of the service
    /// determines the timeouts, which this command does not know.
    func serviceResponse(sending bytes: Int64) -> Duration {
        if total == nil, responseTimeout == nil { return ServiceRequest.longestCall }
        return timeouts.longest(sending: bytes) * 2 + .seconds(30)
    }

    /// The timeouts of an attempt without the service.
    private var timeouts: AttemptTimeouts { options.timeouts }

    /// The options of an attempt without the service.
    var options: EnqueueOptions {
        var options = EnqueueOptions()
        apply(to: &options)
        return options
    }
}

/// The options that describe the expected response.
struct ExpectationOptions: ParsableArguments {
    @Option(
        help:
            "The expected response, like status=2xx,type=application/json,json=/ok=true. Default status=2xx. Repeatable."
    )
    var expect: [String] = []

    /// Returns what all `--expect` options together expect; `nil` if there is none.
    func expectation() throws(CommandError) -> Expectation? {
        guard !expect.isEmpty else { return nil }
        do {
            return try Expectation(parsing: expect.joined(separator: ","))
        } catch {
            throw CommandError(.usage, "`--expect`: \(error.message)")
        }
    }
}
