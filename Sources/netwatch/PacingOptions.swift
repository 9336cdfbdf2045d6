internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The options of `netwatch serve` that limit what it sends, and when.
struct PacingOptions: ParsableArguments {
    @Option(
        help: .init(
            """
            The maximum random delay before the first requests after an outage or a start, like 60s. Default: no \
            delay.
            """,
            valueName: "duration"
        ),
        transform: Duration.argument(
            in: OfflineQueue.Configuration.Accepted.reconnectSpread,
            "0s to 366d"
        )
    )
    var reconnectSpread: Duration?

    @Option(
        help: .init(
            """
            The maximum rate of requests: 10/s for the whole queue, or example.com=30/m for one host. Units: s, m, h. \
            `,burst=N` permits N requests at once after a pause. Repeatable.
            """,
            valueName: "[host=]n/unit"
        ),
        transform: Self.rate
    )
    var rate: [GivenRate] = []

    @Option(
        help: .init(
            """
            How many slots a host gets for each slot of another host, while several hosts wait: 1 to 100. Default 1. \
            Repeatable, once for each host.
            """,
            valueName: "host=n"
        ),
        transform: Weight.ofHost
    )
    var hostWeight: [Weight] = []

    @Option(
        help: .init(
            """
            How many slots a lane with the label gets for each slot of another lane, while several lanes of their \
            origin wait: 1 to 100. Default 1. Repeatable, once for each label.
            """,
            valueName: "label=n"
        ),
        transform: Weight.init
    )
    var laneWeight: [Weight] = []

    @Option(
        help: .init(
            """
            The interfaces whose connections are metered, in addition to mobile networks: a name, or a pattern like \
            'wlan*'. Paths to this machine itself are never metered. Repeatable.
            """,
            valueName: "interface"
        )
    )
    var metered: [String] = []

    /// A rate limit, with the text as the user wrote it.
    struct GivenRate: Sendable {
        let text: String
        let limit: RateLimit
    }

    /// The weight of a host or label.
    struct Weight: Sendable {
        /// The text as the user wrote it.
        let text: String
        /// The label, or the host as the queue compares hosts.
        let name: String
        let value: Int

        init(_ text: String) throws {
            guard let equals = text.lastIndex(of: "="), equals > text.startIndex,
                let value = Int(text[text.index(after: equals)...]),
                OfflineQueue.Configuration.Accepted.weights.contains(value)
            else {
                throw ValidationError(
                    "\(Printer.quoted(text)) is not a name and a weight from 1 to 100, like `NAME=3`"
                )
            }
            self.init(text, String(text[..<equals]), value)
        }

        private init(_ text: String, _ name: String, _ value: Int) {
            (self.text, self.name, self.value) = (text, name, value)
        }

        /// Parses the weight of a host.
        static func ofHost(_ text: String) throws -> Weight {
            let weight = try Weight(text)
            do {
                return Weight(text, try Origin.configuredHost(weight.name), weight.value)
            } catch {
                throw ValidationError(error.message)
            }
        }
    }

    private static func rate(_ text: String) throws -> GivenRate {
        do {
            return GivenRate(text: text, limit: try RateLimit(parsing: text))
        } catch {
            throw ValidationError(error.message)
        }
    }

    func validate() throws {
        try Self.requireOne("--rate", "host, and once without a host", rate) { given in
            (given.text, given.limit.host?.lowercased() ?? "")
        }
        try Self.requireOne("--host-weight", "host", hostWeight) { ($0.text, $0.name) }
        try Self.requireOne("--lane-weight", "label", laneWeight) { ($0.text, $0.name) }
        for name in metered where !MeteredInterfaces.isValid(name) {
            throw ValidationError(
                "`--metered` is \(Printer.quoted(name)); it must be \(MeteredInterfaces.accepted)"
            )
        }
    }

    /// Refuses two values of an option for the same subject. The message quotes both.
    ///
    /// - Parameter subject: Returns the text of a value, and the subject to which it applies.
    private static func requireOne<Value>(
        _ option: String,
        _ accepted: String,
        _ values: [Value],
        _ subject: (Value) -> (text: String, subject: String)
    ) throws {
        var known: [String: String] = [:]
        for (text, subject) in values.map(subject) {
            guard let other = known.updateValue(text, forKey: subject) else { continue }
            throw ValidationError(
                "\(Printer.quoted(other)) and \(Printer.quoted(text)): "
                    + "`\(option)` may be given once for each \(accepted)"
            )
        }
    }

    /// Replaces the values of the configuration with those that were given.
    func apply(to configuration: inout OfflineQueue.Configuration) {
        configuration.reconnectSpread = reconnectSpread ?? configuration.reconnectSpread
        if !rate.isEmpty { configuration.rates = rate.map(\.limit) }
        if !hostWeight.isEmpty { configuration.hostWeights = Self.dictionary(hostWeight) }
        if !laneWeight.isEmpty { configuration.laneWeights = Self.dictionary(laneWeight) }
        if !metered.isEmpty { configuration.meteredInterfaces = metered }
    }

    private static func dictionary(_ weights: [Weight]) -> [String: Int] {
        // `validate()` has refused equal names.
        Dictionary(weights.map { ($0.name, $0.value) }) { first, _ in first }
    }
}
