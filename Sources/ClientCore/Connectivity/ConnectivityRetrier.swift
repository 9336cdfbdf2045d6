internal import Foundation
internal import FoundationNetworking
internal import NetworkReachability

/// A failed attempt of a request, as far as a decision about its retry needs it.
struct FailedAttempt: Sendable {
    let error: any Error
    /// The URL of the last transfer.
    let url: URL?
    /// The number of retries so far.
    let retryCount: UInt

    /// The host that the attempt failed at, also after redirects.
    fileprivate var host: NetworkHost? {
        ((error as? URLError)?.failingURL ?? url)?.host.flatMap { NetworkHost($0) }
    }
}

/// Decides when a request that failed because there was no network is retried: as soon as there is a path to its
/// host.
///
/// It may be used from any thread and by several sessions. Requests to the same host share one watch.
final class ConnectivityRetrier: Sendable {
    let waits: PathWaits
    private let monitor: PathMonitor?
    private let maximumRetries: UInt
    private let pacing: RetryPacing
    private let isOfflineError: @Sendable (any Error) -> Bool

    /// - Parameters:
    ///   - monitor: The monitor of the paths. Default: `nil`, the monitor of the request's session.
    ///   - maximumRetries: The maximum number of retries of a request, counting those by other retriers.
    ///   - pacing: How requests that have waited for the same host are spread over time.
    ///   - isOfflineError: Whether to wait after a failure. Default: ``isNotConnected(_:)``.
    ///   - isUsable: Whether a path ends the wait. Called on the monitor's thread. Default: any path.
    init(
        monitor: PathMonitor? = nil,
        maximumRetries: UInt,
        pacing: RetryPacing,
        isOfflineError: @escaping @Sendable (any Error) -> Bool = ConnectivityRetrier.isNotConnected,
        isUsable: @escaping @Sendable (NetworkPath) -> Bool = { _ in true }
    ) {
        self.monitor = monitor
        self.maximumRetries = maximumRetries
        self.pacing = pacing
        self.isOfflineError = isOfflineError
        waits = PathWaits(pacing) { $0.path.map(isUsable) ?? false }
    }

    /// Whether an error is `URLError.notConnectedToInternet`.
    @Sendable
    static func isNotConnected(_ error: any Error) -> Bool {
        (error as? URLError)?.code == .notConnectedToInternet
    }

    /// Waits for the path to the host of a failed attempt.
    ///
    /// - Parameters:
    ///   - paths: The paths of the request's session.
    ///   - longest: The maximum time to wait for the path; `nil` for no limit.
    /// - Returns: The delay before the retry; `nil` if the request is not retried.
    func delay(
        after attempt: FailedAttempt,
        _ paths: SessionPaths,
        waitingAtMost longest: Duration?
    ) async -> Duration? {
        guard attempt.retryCount < maximumRetries, longest.map({ $0 > .zero }) != false,
            isOfflineError(attempt.error), let host = attempt.host
        else { return nil }
        let monitor = if let monitor { monitor } else { await paths.monitor() }
        let outcome = await waits.wait(for: host, monitor, atMost: longest)
        return delay(outcome, retryCount: attempt.retryCount)
    }

    private func delay(_ outcome: PathWaits.Outcome, retryCount: UInt) -> Duration? {
        var generator = SystemRandomNumberGenerator()
        let retries = Int(clamping: retryCount)
        return switch outcome {
        case .ended: nil
        case .alreadyReachable: pacing.delay(after: retries + 1, using: &generator)
        case .reachable(let offset): offset + pacing.delay(after: retries, using: &generator)
        }
    }
}
