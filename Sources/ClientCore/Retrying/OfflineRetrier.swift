internal import Foundation
public import FoundationNetworking
public import NetworkReachability

/// An interceptor that retries requests that failed because there was no network, as soon as there is a path to their
/// host.
///
/// Waiting requests are kept in memory, so they are lost when the process ends. <doc:OfflineAndRetries> describes
/// alternatives that survive the process.
///
/// ```swift
/// session.interceptor = OfflineRetrier(maximumWait: .seconds(60))
/// ```
///
/// If the path was lost after something of a request was sent, the request is sent again only if its method is
/// idempotent or it has an `Idempotency-Key`. After a redirect, this must be true of the original request, too.
///
/// Each request waits for a path to the host at which it failed. After a redirect, this is the redirect's target. The
/// kernel's routing decides whether there is a path (`PathMonitor`); no server is contacted. Requests to the same host
/// share one watch, which exists only while requests wait. A retrier may be used from any thread and by several
/// sessions.
public final class OfflineRetrier: RequestInterceptor, SessionIndependentInterceptor {
    let connectivity: ConnectivityRetrier
    private let maximumWait: Duration?

    /// Creates a retrier.
    ///
    /// - Parameters:
    ///   - monitor: The monitor of the paths. Default: `nil`, the monitor of the request's session, which is
    ///     `PathMonitor.shared`.
    ///   - maximumWait: The maximum time that a request waits for its path after its failure. When it has passed, the
    ///     request fails. The delays of ``RetryPacing`` come in addition. Default: 5 s. `nil` waits without limit. A
    ///     value of zero or below does not wait.
    ///   - maximumRetries: The maximum number of retries of a request, including those by other retriers. Default: 5.
    ///     With the default pacing, the delays before 5 retries take at most about 8 s in total if there is a path but
    ///     the request keeps failing.
    ///   - pacing: How the retries of requests that have waited for the same host are spread over time.
    ///   - requiredInterfaceType: The interface type that the path must use, directly or as its underlying
    ///     medium (`NetworkPath.medium`). Default: `nil`, any type.
    ///   - prohibitedInterfaceTypes: The interface types that the path must not use, directly or as its
    ///     underlying medium. Default: none.
    ///   - isOfflineError: Returns whether a request that failed with this error waits for a path. May be called on
    ///     any thread, without a lock held. Default: ``isNotConnected(_:)``.
    @preconcurrency
    public init(
        monitor: PathMonitor? = nil,
        maximumWait: Duration? = .seconds(5),
        maximumRetries: UInt = 5,
        pacing: RetryPacing = RetryPacing(),
        requiredInterfaceType: InterfaceType? = nil,
        prohibitedInterfaceTypes: Set<InterfaceType> = [],
        isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.isNotConnected
    ) {
        self.maximumWait = maximumWait
        connectivity = ConnectivityRetrier(
            monitor: monitor,
            maximumRetries: maximumRetries,
            pacing: pacing,
            isOfflineError: isOfflineError
        ) { path in
            let types: Set = [path.interfaceType, path.medium]
            return requiredInterfaceType.map(types.contains) != false
                && types.isDisjoint(with: prohibitedInterfaceTypes)
        }
    }

    /// Returns whether an error is `URLError.notConnectedToInternet`: there was no path to the host.
    @Sendable
    public static func isNotConnected(_ error: any Error) -> Bool {
        ConnectivityRetrier.isNotConnected(error)
    }

    /// Returns the request unchanged.
    public func adapt(
        _ urlRequest: URLRequest,
        for session: SessionManager
    ) async throws -> URLRequest {
        urlRequest
    }

    /// Waits for a path to the request's host, if the request failed because there was no path.
    public func retry(
        _ request: Request,
        for session: SessionManager,
        dueTo error: any Error
    ) async -> RetryResult {
        await retry(request, session.context.paths, dueTo: error)
    }

    func retry(_ request: Request, _ paths: SessionPaths, dueTo error: any Error) async -> RetryResult {
        let attempt = FailedAttempt(request, error)
        let delay = await connectivity.delay(after: attempt, paths, waitingAtMost: maximumWait)
        return delay.map { .retryWithDelay($0.inSeconds) } ?? .doNotRetry
    }
}

extension RequestInterceptor where Self == OfflineRetrier {
    /// A retrier that waits for a path to the request's host, for up to 5 s.
    public static var offlineRetrier: OfflineRetrier { OfflineRetrier() }

    /// Returns a retrier that waits for a path to the request's host.
    ///
    /// - Parameters:
    ///   - maximumWait: The maximum time to wait; `nil` for no limit. Default: 5 s.
    ///   - isOfflineError: Returns whether a request that failed with this error waits for a path. Default:
    ///     ``OfflineRetrier/isNotConnected(_:)``.
    @preconcurrency
    public static func offlineRetrier(
        maximumWait: Duration? = .seconds(5),
        isOfflineError: @escaping @Sendable (any Error) -> Bool = OfflineRetrier.isNotConnected
    ) -> OfflineRetrier {
        OfflineRetrier(maximumWait: maximumWait, isOfflineError: isOfflineError)
    }
}
