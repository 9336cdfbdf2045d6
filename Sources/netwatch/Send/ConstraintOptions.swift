internal import ArgumentParser
internal import NetwatchService
internal import NetworkReachability
internal import OfflineQueue

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
    var interfaceKind: [[String]] = []

    @Option(
        name: .customLong("window"),
        help: .init(
            "Send only in this daily window: 22:00-06:00 (UTC), or '22:00-06:00 Europe/Berlin'. Not repeatable.",
            valueName: "window"
        ),
        transform: Self.window
    )
    var windows: [String] = []

    private static let kinds = InterfaceType.allCases.map(\.rawValue).joined(separator: ", ")

    private static func kinds(_ text: String) throws -> [String] {
        try refusing { () throws(QueueError) in
            var kinds: [String] = []
            for name in text.split(separator: ",", omittingEmptySubsequences: false) {
                kinds.append(try RequestConstraints.kind(String(name)).rawValue)
            }
            return kinds
        }
    }

    private static func window(_ text: String) throws -> String {
        try refusing { () throws(QueueError) in try DailyWindow(parsing: text).description }
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

    func apply(to message: inout ControlMessage.Send) {
        if onlyUnmetered { message.onlyUnmetered = true }
        if !interfaceKind.isEmpty { message.interfaceKinds = interfaceKind.flatMap(\.self) }
        message.window = windows.first
    }
}
