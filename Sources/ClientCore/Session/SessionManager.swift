internal import Foundation
internal import FoundationNetworking
package import NetwatchTransport
internal import Synchronization

/// Makes requests and keeps them while they run.
///
/// Dropping the last reference to a session cancels its requests: their handlers get
/// ``AFError/sessionDeinitialized``. All functions may be called from any thread.
public final class SessionManager: Sendable {
    /// The session for everyone. It is never dropped.
    public static let `default` = SessionManager()

    private let engine: TransferEngine
    private let unixSocketPath: String?
    private let running = RunningRequests()

    /// Makes a session of its own.
    public convenience init() {
        self.init(engine: .shared)
    }

    /// Makes a session whose requests all go to one unix socket (`unix(7)`), whatever host their URLs name.
    ///
    /// - Parameter unixSocketPath: The socket's path, at most 107 bytes.
    public convenience init(unixSocketPath: String) {
        self.init(engine: .shared, unixSocketPath: unixSocketPath)
    }

    package init(engine: TransferEngine, unixSocketPath: String? = nil) {
        self.engine = engine
        self.unixSocketPath = unixSocketPath
    }

    deinit {
        for request in running.all { request.sessionDropped() }
    }

    /// Makes a request and starts it.
    ///
    /// Nothing is thrown: what is wrong with the request becomes the error its handlers get.
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `GET`.
    ///   - headers: Header fields. Default none.
    @discardableResult
    public func request(
        _ url: any URLConvertible,
        method: HTTPMethod = .get,
        headers: HTTPHeaders? = nil
    ) -> DataRequest {
        start(Result { try URLRequest(url: url, method: method, headers: headers) })
    }

    /// Starts a request that was made elsewhere, which is how to send a body.
    ///
    /// Its `timeoutInterval` is how long no byte may go either way. A body stream is not supported.
    @discardableResult
    public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        start(Result { try urlRequest.asURLRequest() })
    }

    /// Like ``request(_:)``, with limits.
    ///
    /// - Parameters:
    ///   - maximumResponseBytes: A body longer than that ends the request with
    ///     `URLError.dataLengthExceedsMaximum`, with the response and that much of its body beside the error.
    ///   - totalTimeout: A request that takes longer ends with `URLError.timedOut`.
    package func request(
        _ urlRequest: any URLRequestConvertible,
        maximumResponseBytes: Int,
        totalTimeout: Duration
    ) -> DataRequest {
        start(Result { try urlRequest.asURLRequest() }) {
            $0.maximumResponseBodyBytes = maximumResponseBytes
            $0.totalTimeout = totalTimeout
        }
    }

    /// Makes requests from now on, of every session on this engine, use new connections and newly
    /// looked-up names. For when the network path has changed.
    package func renewConnections() {
        engine.renewConnections()
    }

    private func start(
        _ urlRequest: Result<URLRequest, any Error>,
        adjust: (inout TransferRequest) -> Void = { _ in }
    ) -> DataRequest {
        let id = running.nextID()
        let request = DataRequest(urlRequest, engine: engine) { [running] in running.remove(id) }
        running.add(request, id)
        request.start(
            Result {
                var transfer = try TransferRequest(urlRequest.get())
                transfer.unixSocketPath = unixSocketPath
                adjust(&transfer)
                return transfer
            }
        )
        return request
    }
}

/// The requests of a session that have not ended, which outlives it by as long as they take to end.
private final class RunningRequests: Sendable {
    private struct State {
        var requests: [UInt64: Request] = [:]
        var nextID: UInt64 = 0
    }

    private let state = Mutex(State())

    var all: [Request] {
        state.withLock { Array($0.requests.values) }
    }

    func nextID() -> UInt64 {
        state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
    }

    func add(_ request: Request, _ id: UInt64) {
        state.withLock { $0.requests[id] = request }
    }

    func remove(_ id: UInt64) {
        // Its last reference may go here, with whatever its handlers held.
        let removed = state.withLock { $0.requests.removeValue(forKey: id) }
        withExtendedLifetime(removed) {}
    }
}
