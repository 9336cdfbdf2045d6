internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
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

/// The pacing of retries when the path to a host has come back.
///
/// The first few requests are retried immediately, in the order in which they failed. The rest follow one by one, so
/// that a thousand requests do not open a thousand connections at once to a server that may have just restarted. The
/// intervals are random, because all machines behind a router get their path back in the same second.
public struct RetryPacing: Hashable, Sendable {
    /// The number of requests that are retried immediately. Default: 4, which is fewer than the six connections that
    /// browsers open to a host. Values below 1 become 1.
    public let atOnce: Int
    /// The average interval between the other requests. Each interval is multiplied by a random factor from 0.5 to
    /// 1.5. Default: 25 ms. At this interval, a thousand requests take 25 s. Negative values become zero.
    public let interval: Duration
    /// The delay before the first retry of a request that failed although there was a path to its host. The delay
    /// doubles with each such failure, and is multiplied by a random factor from 0.75 to 1. Default: 250 ms. Values
    /// below 1 ms become 1 ms.
    public let firstDelay: Duration
    /// The limit up to which ``firstDelay`` is doubled. Default: 30 s. Values below ``firstDelay`` become
    /// ``firstDelay``.
    public let longestDelay: Duration

    /// Creates a retry pacing.
    ///
    /// - Parameters:
    ///   - atOnce: The number of requests that are retried immediately. Default: 4.
    ///   - interval: The average interval between the following requests. Default: 25 ms.
    ///   - firstDelay: The delay before the first retry after a failure although there was a path. Default: 250 ms.
    ///   - longestDelay: The limit up to which `firstDelay` is doubled. Default: 30 s.
    public init(
        atOnce: Int = 4,
        interval: Duration = .milliseconds(25),
        firstDelay: Duration = .milliseconds(250),
        longestDelay: Duration = .seconds(30)
    ) {
        self.atOnce = max(atOnce, 1)
        self.interval = max(interval, .zero)
        self.firstDelay = max(firstDelay, .milliseconds(1))
        self.longestDelay = max(longestDelay, self.firstDelay)
    }

    /// Returns the delays, from now, after which `count` waiting requests are retried, in ascending order.
    func offsets(of count: Int) -> [Duration] {
        var offset = Duration.zero
        return (0..<count).map { index in
            if index >= atOnce { offset += interval * Double.random(in: 0.5...1.5) }
            return offset
        }
    }

    /// Returns the delay before a retry of a request.
    ///
    /// - Parameter failures: The number of times that the request failed although there was a path. 0 means no delay.
    func delay(after failures: Int) -> Duration {
        guard failures > 0 else { return .zero }
        return firstDelay.doubled(times: failures - 1, upTo: longestDelay) * Double.random(in: 0.75...1)
    }
}
