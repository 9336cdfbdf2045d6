internal import ArgumentParser
internal import ClientCore
internal import NetwatchService
internal import OfflineQueue

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

    func apply(to message: inout ControlMessage.Send) {
        message.connectTimeoutSeconds = connectTimeout?.seconds
        message.responseTimeoutSeconds = responseTimeout?.seconds
        message.totalTimeoutSeconds = total?.seconds
        message.httpVersion = httpVersion?.rawValue
    }

    /// Returns how long the service may take to respond: until the first attempt ends, and a second one that confirms a
    /// refusal, plus 30 s for the delay before it and for the disk. Without options, the configuration of the service
    /// determines the timeouts, which this command does not know.
    func serviceResponse(sending bytes: Int64) -> Duration {
        if total == nil, responseTimeout == nil { return ServiceRequest.longestCall }
        return timeouts.longest(sending: bytes) * 2 + .seconds(30)
    }

    /// The timeouts of an attempt without the service.
    private var timeouts: AttemptTimeouts {
        var timeouts = AttemptTimeouts()
        if let connectTimeout { timeouts.connect = connectTimeout }
        if let responseTimeout { timeouts.response = responseTimeout }
        timeouts.total = total
        return timeouts
    }

    /// The options of an attempt without the service.
    var options: EnqueueOptions {
        var options = EnqueueOptions()
        (options.timeouts, options.httpVersion) = (timeouts, httpVersion)
        return options
    }
}
