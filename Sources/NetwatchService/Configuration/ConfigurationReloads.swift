internal import Foundation

/// Applies the configuration files again, for a signal or a call of the control API. Reloads run one at a time, in the
/// order of the calls.
actor ConfigurationReloads {
    /// The result of a reload.
    enum Outcome: Hashable, Sendable {
        /// The number of watched hosts; the keys whose new values apply only after a restart; and the keys whose new
        /// values in files have no effect, because environment variables replace them.
        case applied(hosts: Int, restartKeys: [String], replacedKeys: [String] = [])
        /// All faults. The service keeps its configuration.
        case refused([String])

        var isRefused: Bool { if case .refused = self { true } else { false } }
    }

    private var action: @Sendable () async -> Outcome = { .refused(["the service is starting"]) }
    private var last: Task<Outcome, Never>?
    /// The time and the result of the last reload; `nil` if there was none.
    private(set) var latest: (date: Date, outcome: Outcome)?

    /// Sets the function that reads the files and applies them.
    func use(_ action: @escaping @Sendable () async -> Outcome) { self.action = action }

    /// Reloads at each element, until the sequence ends or the task is cancelled.
    func run(at signals: AsyncStream<Void>) async {
        for await _ in signals { _ = await reload() }
    }

    /// Reloads after the reloads that were called before. A cancellation has no effect.
    func reload() async -> Outcome {
        let task = Task { [action, last] in
            _ = await last?.value
            let outcome = await action()
            latest = (Date(), outcome)
            return outcome
        }
        last = task
        return await task.value
    }
}
