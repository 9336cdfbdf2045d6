internal import Foundation
internal import FoundationNetworking
internal import NetworkReachability

/// The properties of a failed attempt from which ``ConnectivityRetrier`` decides about a retry.
struct FailedAttempt: Sendable {
    let error: any Error
    /// The URL of the last transfer.
    let url: URL?
    /// The number of retries of the request so far.
    let retryCount: UInt
    /// Whether an earlier transfer of the attempt got a response, for example a redirect.
    let hasEarlierTransfers: Bool
    /// Whether the request may arrive twice: its method is idempotent, or it has an idempotency key. A retry begins
    /// with the request that the attempt began with, so after a redirect this must be true of both.
    let mayBeSentTwice: Bool

    /// Whether the path was lost after the request was sent, and the server must not receive it again.
    fileprivate var isLostForGood: Bool {
        let wasSent = hasEarlierTransfers || (error.transferFailure?.bytesSent ?? 0) > 0
        return !mayBeSentTwice && wasSent && ConnectivityRetrier.isNotConnected(error)
    }

    /// The URL of the transfer that failed. After a redirect, it can differ from the URL of the request.
    private var failedURL: URL? { (error as? URLError)?.failingURL ?? url }
    fileprivate var host: NetworkHost? { failedURL?.host.flatMap { NetworkHost($0) } }
    fileprivate var port: UInt16? { failedURL?.effectivePort.flatMap { UInt16(exactly: $0) } }
}

/// Decides when to retry requests that failed because there was no network: as soon as there is a path to their
/// host.
///
/// Several sessions may share a retrier, and any thread may use it. Requests to the same host share one watch.
final class ConnectivityRetrier: Sendable {
    let waits: PathWaits
    private let monitor: PathMonitor?
    private let maximumRetries: UInt
    private let pacing: RetryPacing
    private let isOfflineError: @Sendable (any Error) -> Bool

    /// - Parameters:
    ///   - monitor: The monitor of the paths. Default: `nil`, the monitor of the request's session.
    ///   - maximumRetries: The maximum number of retries of a request, including retries by other retriers.
    ///   - pacing: Spreads the retries of requests that wait for the same host over time.
    ///   - isOfflineError: Returns whether an error means that there is no network. Default: ``isNotConnected(_:)``.
    ///   - isUsable: Returns whether a path is sufficient for a retry. Called on the monitor's thread. Default: any
    ///     path is.
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

    /// Returns whether an error is `URLError.notConnectedToInternet`.
    @Sendable
    static func isNotConnected(_ error: any Error) -> Bool {
        (error as? URLError)?.code == .notConnectedToInternet
    }

    /// Waits until there is a path to the host of a failed attempt, and returns the delay before the retry.
    ///
    /// - Parameters:
    ///   - attempt: The failed attempt.
    ///   - paths: The path monitor of the request's session.
    ///   - longest: The maximum time to wait for the path; `nil` for no limit.
    /// - Returns: The time that the caller must wait before the retry; `nil` if the request must not be retried.
    func delay(
        after attempt: FailedAttempt,
        _ paths: SessionPaths,
        waitingAtMost longest: Duration?
    ) async -> Duration? {
        guard attempt.retryCount < maximumRetries, longest.map({ $0 > .zero }) != false,
            isOfflineError(attempt.error), !attempt.isLostForGood, let host = attempt.host
        else { return nil }
        let monitor = if let monitor { monitor } else { await paths.monitor() }
        let outcome = await waits.wait(for: host, port: attempt.port, monitor, atMost: longest)
        return delay(outcome, retryCount: attempt.retryCount)
    }

    private func delay(_ outcome: PathWaits.Outcome, retryCount: UInt) -> Duration? {
        let retries = Int(clamping: retryCount)
        return switch outcome {
        case .ended: nil
        case .alreadyReachable: pacing.delay(after: retries + 1)
        case .reachable(let offset): offset + pacing.delay(after: retries)
        }
    }
}
