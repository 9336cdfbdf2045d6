internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop
internal import OfflineQueue

/// The configuration that the service uses, compared with the files and variables.
package final class ConfigurationInUse: Sendable {
    /// Reads the files and variables. Blocks.
    package typealias Reading = @Sendable () throws(InvalidConfiguration) -> ServiceConfiguration

    /// The difference between the files and variables, as they are now, and the configuration in use.
    struct Review: Hashable, Sendable {
        /// The faults because of which a reload would be refused. If there are any, the keys are not known.
        var faults: [String] = []
        /// The keys that a reload would change.
        var reloadKeys: [String] = []
        /// The keys that only a restart would change.
        var restartKeys: [String] = []
    }

    private struct State {
        var values: ConfigurationValues
        var fallback: ConfigurationFallback?
        var keepingFailure: String?
    }

    /// The path of the main file, which may be missing.
    let path: String
    private let reading: Reading
    private let state: Lock<State>

    /// - Parameters:
    ///   - start: The configuration with which the service starts.
    ///   - path: The path of the main file.
    ///   - reading: Reads the files and variables again.
    package init(_ start: StartConfiguration, path: String, reading: @escaping Reading) {
        self.path = path
        self.reading = reading
        state = Lock(State(values: start.configuration.values, fallback: start.fallback))
    }

    /// Why the service uses its last good configuration; `nil` if it uses that of its files and variables.
    var fallback: ConfigurationFallback? { state.withLock { $0.fallback } }

    /// Why the configuration in use could not be stored as the last good one; `nil` if it was stored.
    var keepingFailure: String? {
        get { state.withLock { $0.keepingFailure } }
        set { state.withLock { $0.keepingFailure = newValue } }
    }

    /// Reads the files and variables.
    func read() async throws(InvalidConfiguration) -> ServiceConfiguration {
        try await DispatchQueue.global().run { [reading] () throws(InvalidConfiguration) in try reading() }
    }

    /// Records that a reload has applied values, except those of keys that need a restart.
    ///
    /// - Returns: The keys that need a restart and differ.
    func apply(_ new: ConfigurationValues) -> [String] {
        state.withLock { state in
            let keys = Self.restartKeys(new.keys(differingFrom: state.values))
            let old = state.values
            state.values = new
            for key in keys { state.values.texts[key] = old.texts[key] }
            state.fallback = nil
            return keys
        }
    }

    /// Compares the files and variables with the configuration in use.
    func review() async -> Review {
        do throws(InvalidConfiguration) {
            let new = try await read().values
            let keys = new.keys(differingFrom: state.withLock { $0.values })
            let restartKeys = Self.restartKeys(keys)
            return Review(reloadKeys: keys.filter { !restartKeys.contains($0) }, restartKeys: restartKeys)
        } catch {
            return Review(faults: error.problems.map(\.description))
        }
    }

    private static func restartKeys(_ keys: [String]) -> [String] {
        keys.filter(SettingTable.restartKeys.contains)
    }
}

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
