internal import Foundation
public import FoundationNetworking
public import NetworkReachability

/// Tries requests again that failed because there was no network, when there is a path to their own host.
///
/// It waits in memory: what it holds is lost with the process. See <doc:OfflineAndRetries> for what survives more.
///
/// ```swift
/// session.interceptor = OfflineRetrier(maximumWait: .seconds(60))
/// ```
///
/// Each request waits for the host that it failed at, after redirects too. The kernel is asked about it
/// (`PathMonitor`), not a server; several requests to one host share one watch, and nothing is watched while
/// nobody waits. All may be used from any thread, by several sessions.
public final class OfflineRetrier: RequestInterceptor {
    private let monitor: PathMonitor?
    let maximumWait: Duration?
    private let maximumRetries: UInt
    private let pacing: RetryPacing
    private let isOfflineError: @Sendable (any Error) -> Bool
    let waits: PathWaits

    /// Makes a retrier.
    ///
    /// - Parameters:
    ///   - monitor: Who watches the paths. Default `nil`: the monitor of the request's session, which is
    ///     `PathMonitor.shared`.
    ///   - maximumWait: How long a request waits for its path, from its own failure on, whoever else waits for
    ///     the same host. After that its failure stands. What ``RetryPacing`` adds comes on top. Default 5 s; `nil`
    ///     for ever; zero and below does not wait.
    ///   - maximumRetries: How often one request may have been tried again, by whomever, for this retrier to try it
    ///     once more. Default 5: with the default pacing about 8 s in all, for a path that is there although requests
    ///     fail.
    ///   - pacing: How those who have waited for one host are let go.
    ///   - requiredInterfaceType: What the path has to leave by, or be carried by in the end
    ///     (`NetworkPath.medium`). Default `nil`: anything.
    ///   - prohibitedInterfaceTypes: What the path must neither leave by nor be carried by. Default nothing.
    ///   - isOfflineError: Whether a failure is one to wait after. Called on a thread of no particular queue, and
    ///     not within any lock. Default: ``isNotConnected(_:)``.
    public init(
        monitor: PathMonitor? = nil,
        maximumWait: Duration? = .seconds(5),
        maximumRetries: UInt = 5,
        pacing: RetryPacing = RetryPacing(),
        requiredInterfaceType: InterfaceType? = nil,
        prohibitedInterfaceTypes: Set<InterfaceType> = [],
        isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.isNotConnected
    ) {
        self.monitor = monitor
        self.maximumWait = maximumWait
        self.maximumRetries = maximumRetries
        self.pacing = pacing
        self.isOfflineError = isOfflineError
        waits = PathWaits(pacing) { status in
            guard let path = status.path else { return false }
            let types: Set = [path.interfaceType, path.medium]
            return requiredInterfaceType.map(types.contains) != false
                && types.isDisjoint(with: prohibitedInterfaceTypes)
        }
    }

    /// Whether an error is `URLError.notConnectedToInternet`: the failure of a request that could not leave this
    /// machine.
    @Sendable
    public static func isNotConnected(_ error: any Error) -> Bool {
        (error as? URLError)?.code == .notConnectedToInternet
    }

    /// Returns the request as it is.
    public func adapt(
        _ urlRequest: URLRequest,
        for session: SessionManager
    ) async throws -> URLRequest {
        urlRequest
    }

    /// Waits for the path to the request's host, if that is what the request lacks.
    public func retry(
        _ request: Request,
        for session: SessionManager,
        dueTo error: any Error
    ) async -> RetryResult {
        let context = session.context
        return await retry(request, context, dueTo: error, waitingAtMost: maximumWait)
    }

    /// - Parameter longest: How long it waits for the path; `nil` for ever.
    func retry(
        _ request: Request,
        _ context: SessionContext,
        dueTo error: any Error,
        waitingAtMost longest: Duration?
    ) async -> RetryResult {
        guard request.retryCount < maximumRetries, longest.map({ $0 > .zero }) != false,
            isOfflineError(error), let host = Self.destination(of: request, failedOf: error)
        else { return .doNotRetry }
        let monitor = if let monitor { monitor } else { await context.paths.monitor() }
        let outcome = await waits.wait(for: host, monitor, atMost: longest)
        return result(outcome, retryCount: request.retryCount)
    }

    private func result(_ outcome: PathWaits.Outcome, retryCount: UInt) -> RetryResult {
        var generator = SystemRandomNumberGenerator()
        let retries = Int(clamping: retryCount)
        switch outcome {
        case .ended: return .doNotRetry
        case .wasThere:
            return .retryWithDelay(pacing.delay(after: retries + 1, using: &generator).inSeconds)
        case .came(let offset):
            return .retryWithDelay((offset + pacing.delay(after: retries, using: &generator)).inSeconds)
        }
    }

    /// The host that the last transfer was to go to.
    private static func destination(of request: Request, failedOf error: any Error) -> NetworkHost? {
        let failing = (error as? URLError)?.failingURL
        return (failing ?? request.task?.currentRequest?.url)?.host.flatMap { NetworkHost($0) }
    }
}

extension RequestInterceptor where Self == OfflineRetrier {
    /// Waits for the path to the request's host, for up to 5 s.
    public static var offlineRetrier: OfflineRetrier { OfflineRetrier() }

    /// Waits for the path to the request's host.
    ///
    /// - Parameters:
    ///   - maximumWait: How long at most; `nil` for ever. Default 5 s.
    ///   - isOfflineError: Whether a failure is one to wait after.
    public static func offlineRetrier(
        maximumWait: Duration? = .seconds(5),
        isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.isNotConnected
    ) -> OfflineRetrier {
        OfflineRetrier(maximumWait: maximumWait, isOfflineError: isOfflineError)
    }
}
