internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import NetworkReachability
internal import OfflineQueue

/// The options that concern the queue.
struct DeliveryOptions: ParsableArguments {
    /// Whether to use the queue.
    enum QueueChoice: String, ExpressibleByArgument, CaseIterable {
        /// Stores the request, tries it once and reports the result.
        case auto
        /// Stores the request and returns. The service tries it afterwards.
        case always
        /// Tries the request once without the service. It is neither stored nor retried.
        case never
    }

    @Option(
        name: .customLong("queue"),
        help:
            "auto: store, try once and report the result; always: store and return; never: try once, without the service."
    )
    var choice = QueueChoice.auto

    @Option(
        help: """
            The label of the lane, which must not begin with netwatch-. Requests with different labels do not wait for \
            each other. Default: none.
            """
    )
    var lane: String?

    @Flag(help: "Send the requests of the lane one at a time, in the order in which they were accepted.")
    var fifo = false

    @Option(
        help:
            "How long to keep trying, like 1h or 30d, at most 366d. Default 7d, or the service's `queue.ttl`.",
        transform: Duration.argument(in: .milliseconds(1)...RequestChecks.longestTime, "1ms to 366d")
    )
    var ttl: Duration?

    @Option(
        help:
            "The earliest time of the first attempt: 2026-01-31T12:34:56Z, or a duration from now. Default: now.",
        transform: StartTime.argument
    )
    var at: Date?

    @Option(help: "The priority within the lane, 0 to 9; 0 is sent before 9. Default 5.")
    var priority: Int?

    @Option(help: "Replace a waiting request of the same lane that has the same key.")
    var replaceKey: String?

    @Option(
        help:
            "The id of a request that must be delivered first, or at least its first 8 characters. Repeatable."
    )
    var dependency: [String] = []

    @Option(
        help: .init(
            """
            The credential that the service adds at each attempt: a file of `netwatch serve --credentials`. The \
            service refuses a name that does not exist.
            """,
            valueName: "name"
        )
    )
    var credential: String?

    @Option(
        help: "A tag by which `netwatch queue` selects requests: 1 to 255 characters of printable ASCII."
    )
    var tag: String?

    @Option(
        help: .init(
            "The URL to which the service posts the outcome as JSON when the request ends, delivered or not.",
            valueName: "url"
        )
    )
    var onDone: String?

    @Option(help: .init("The credential for `--on-done`, as for `--credential`.", valueName: "name"))
    var onDoneCredential: String?

    @OptionGroup var constraints: ConstraintOptions

    @Flag(
        help: """
            Accept a signed URL, such as a presigned URL of S3. The queue stores the signature in plaintext. Without \
            this option, a URL that contains a signature is refused.
            """
    )
    var allowSignature = false

    @Flag(
        help: """
            Never send the request again if the server may have executed it, even if it is then never delivered. Only \
            `netwatch queue release` and `retry` send it again.
            """
    )
    var atMostOnce = false

    @Option(
        help: .init(
            """
            The statuses after which the request is tried again, like 404,500-599 or 4xx. The configuration of the \
            service can contain further ones.
            """,
            valueName: "statuses"
        ),
        transform: StatusList.argument
    )
    var retryStatuses: [ClosedRange<Int>]?

    @Option(
        help: .init(
            "The statuses after which the request is given up at once, in the same form.",
            valueName: "statuses"
        ),
        transform: StatusList.argument
    )
    var deadStatuses: [ClosedRange<Int>]?

    @Option(
        help: "The id of the request. A request whose id is already known is not stored. Default: generated."
    )
    var id: String?

    func validate() throws {
        // `netwatch queue hold -` reads ids from standard input, so `-` cannot be an id.
        if let id, ["", "-"].contains(id) {
            throw ValidationError(
                "`--id '\(id)'`: the id must not be empty or `-`; accepted: 1 to 255 printable ASCII characters"
            )
        }
        // The queue reports the same mistakes with the names of its own interface.
        if fifo, let priority, priority != EnqueueOptions.defaultPriority {
            throw ValidationError("`--priority` cannot be combined with `--fifo`")
        }
        for (name, text) in texts where text == "" { throw ValidationError("`\(name)` must not be empty") }
        if onDoneCredential != nil, onDone == nil {
            throw ValidationError("`--on-done-credential` requires `--on-done`")
        }
        guard choice == .never else { return }
        let given: [(String, Bool)] =
            [
                ("--lane", lane != nil), ("--fifo", fifo), ("--ttl", ttl != nil), ("--at", at != nil),
                ("--priority", priority != nil), ("--replace-key", replaceKey != nil),
                ("--dependency", !dependency.isEmpty), ("--credential", credential != nil),
                ("--tag", tag != nil),
                ("--on-done", onDone != nil), ("--allow-signature", allowSignature), ("--id", id != nil),
                ("--retry-statuses", retryStatuses != nil), ("--dead-statuses", deadStatuses != nil),
            ] + constraints.given
        guard let name = given.first(where: \.1)?.0 else { return }
        throw ValidationError("`--queue never` cannot be combined with `\(name)`")
    }

    /// The options that must not be empty, by name.
    private var texts: [(String, String?)] {
        [
            ("--lane", lane), ("--replace-key", replaceKey), ("--credential", credential), ("--tag", tag),
            ("--on-done", onDone), ("--on-done-credential", onDoneCredential),
        ]
    }

    func apply(to message: inout ControlMessage.Send) {
        message.queue = choice == .always ? .always : .auto
        apply(to: &message.options)
        constraints.apply(to: &message.options.constraints)
        // The command chooses the id, so that it knows the id even if the response is lost.
        message.options.id = id ?? UUIDv7.make()
    }

    private func apply(to options: inout EnqueueOptions) {
        (options.lane, options.isFIFO, options.notBefore) = (lane, fifo, at)
        options.timeToLive = ttl ?? options.timeToLive
        options.priority = priority ?? options.priority
        options.replaceKey = replaceKey
        options.isAtMostOnce = atMostOnce
        options.statusRules = StatusRules(retry: retryStatuses ?? [], dead: deadStatuses ?? [])
        options.allowsSignature = allowSignature
        (options.credential, options.tag) = (credential, tag)
        options.onDone = onDone.map { Webhook(url: $0, credential: onDoneCredential) }
    }
}

/// Parses statuses of responses.
enum StatusList {
    static func argument(_ text: String) throws -> [ClosedRange<Int>] {
        do throws(QueueError) { return try StatusRanges.parse(text) } catch {
            throw ValidationError(error.message)
        }
    }
}

/// Parses the time of the first attempt.
enum StartTime {
    static func argument(_ text: String) throws -> Date {
        if let duration = DurationText.parse(text) { return Date(timeIntervalSinceNow: duration.seconds) }
        guard let date = Date(rfc3339: text) else {
            throw ValidationError(
                "`\(text)` is neither a time like `2026-01-31T12:34:56Z` nor \(DurationText.acceptedForms)"
            )
        }
        return date
    }
}

/// The options that make a request wait for a connection or a time.
struct ConstraintOptions: ParsableArguments {
    @Flag(help: "Send only over a connection that is not metered. See `netwatch serve --metered`.")
    var onlyUnmetered = false

    @Option(
        help: .init(
            """
            Send only over an interface of one of these kinds: \(Self.kinds). Repeatable; commas separate several kinds.
            """,
            valueName: "kind"
        ),
        transform: Self.kinds
    )
    var interfaceKind: [[InterfaceType]] = []

    @Option(
        name: .customLong("window"),
        help: .init(
            "Send only in this daily window: 22:00-06:00 (UTC), or '22:00-06:00 Europe/Berlin'. Not repeatable.",
            valueName: "window"
        ),
        transform: Self.window
    )
    var windows: [DailyWindow] = []

    private static let kinds = InterfaceType.allCases.map(\.rawValue).joined(separator: ", ")

    private static func kinds(_ text: String) throws -> [InterfaceType] {
        try refusing { () throws(QueueError) in
            var kinds: [InterfaceType] = []
            for name in text.split(separator: ",", omittingEmptySubsequences: false) {
                kinds.append(try RequestConstraints.kind(String(name)))
            }
            return kinds
        }
    }

    private static func window(_ text: String) throws -> DailyWindow {
        try refusing { () throws(QueueError) in try DailyWindow(parsing: text) }
    }

    private static func refusing<Value>(_ parse: () throws(QueueError) -> Value) throws -> Value {
        do {
            return try parse()
        } catch {
            throw ValidationError(error.message)
        }
    }

    func validate() throws {
        guard windows.count > 1 else { return }
        let given = windows.map { "`\($0)`" }.joined(separator: " and ")
        throw ValidationError("`--window` may be given only once; given: \(given)")
    }

    /// The names of the options, with whether they are given.
    var given: [(String, Bool)] {
        [
            ("--only-unmetered", onlyUnmetered), ("--interface-kind", !interfaceKind.isEmpty),
            ("--window", !windows.isEmpty),
        ]
    }

    func apply(to constraints: inout RequestConstraints) {
        constraints.isUnmetered = onlyUnmetered
        constraints.interfaceKinds = Set(interfaceKind.flatMap(\.self))
        constraints.window = windows.first
    }
}
