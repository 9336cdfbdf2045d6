package import Dispatch
internal import Foundation
package import FoundationNetworking
package import NetwatchTransport

extension SessionManager {
    /// Creates a request and starts it.
    ///
    /// This function does not throw. If the request is invalid, its handlers receive the error.
    ///
    /// ```swift
    /// session.request(
    ///     "https://example.com/orders", method: .post, parameters: ["product": 17], encoding: JSONEncoding.default
    /// )
    /// .validate()
    /// .responseJSON { response in print(response.result) }
    /// ```
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `GET`.
    ///   - parameters: The parameters that `encoding` adds to the request. Default: none.
    ///   - encoding: Adds the parameters to the request. Default: ``URLEncoding``, which uses the query for `GET`,
    ///     `HEAD` and `DELETE`, and the body for other methods.
    ///   - headers: Header fields, which override the session's. Default: none.
    @discardableResult
    public func request(
        _ url: any URLConvertible,
        method: HTTPMethod = .get,
        parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default,
        headers: HTTPHeaders? = nil
    ) -> DataRequest {
        start(
            RequestPlan(
                original: Self.makeRequest(url, method, parameters, encoding, headers)
            )
        )
    }

    /// Creates a request from a `URLRequest` and starts it. Use this function to send a custom body.
    ///
    /// The `timeoutInterval` of the `URLRequest` is the idle timeout: the maximum time, in seconds, without a byte in
    /// either direction. The value 60, Foundation's default, selects the session's idle timeout.
    ///
    /// ```swift
    /// var urlRequest = URLRequest(url: URL(string: "https://example.com/notes/1")!)
    /// urlRequest.httpMethod = "PUT"
    /// urlRequest.httpBody = Data("a note".utf8)
    /// session.request(urlRequest).validate().response { print($0.response?.statusCode ?? 0) }
    /// ```
    @discardableResult
    public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        start(RequestPlan(urlRequest))
    }

    /// Creates a request with a transfer policy, and starts it.
    ///
    /// - Parameters:
    ///   - body: The body that replaces the request's own. Default: `nil`, which keeps the request's own.
    ///   - policy: The limits of the request, usually a ``TransferPolicy`` of a single transfer.
    package func transfer(
        _ urlRequest: any URLRequestConvertible,
        body: ReplayableBody? = nil,
        policy: TransferPolicy
    ) -> DataRequest {
        var plan = RequestPlan(urlRequest)
        plan.upload = body.map(UploadBody.replayable)
        let defaultBytes = RequestOptions.defaultMaximumDataBytes
        plan.options.maximumDataBytes = max(policy.maximumResponseBytes ?? 0, defaultBytes)
        plan.policy = policy
        return start(plan)
    }

    /// Whether the session has an adapter or an interceptor.
    package var adaptsRequests: Bool {
        let hooks = context.hooks
        return hooks.adapter != nil || hooks.interceptor != nil
    }

    /// Returns the request that the adapter, and after it the interceptor, create from a request. Either may take any
    /// time and may ignore the cancellation of the task.
    ///
    /// - Parameter queue: The queue on which the adapter is called, because it may block its thread.
    /// - Throws: The error of the adapter or of the interceptor.
    package func adapted(_ request: URLRequest, on queue: DispatchQueue) async throws -> URLRequest {
        let hooks = context.hooks
        var request = request
        if let adapter = hooks.adapter {
            let original = request
            let result: Result<URLRequest, any Error> = await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: Result { try adapter.adapt(original) }) }
            }
            request = try result.get()
        }
        return try await hooks.interceptor?.adapt(request, for: self) ?? request
    }

    /// Returns the header fields that are sent with an adapted request: its own, those of the session, and cookies.
    package func sentFields(of request: URLRequest) -> [TransferRequest.Header] {
        TransferRequest.headers(of: request, settings: context.settings, isCrossOrigin: false)
    }

    /// The path of the unix socket to which all requests are sent; `nil` if they are sent to the hosts in their URLs.
    package var unixSocketPath: String? { context.settings.unixSocketPath }

    /// Returns whether the server of an `https` URL must prove that it is the URL's host. A pin and a custom evaluation
    /// count as proof.
    package func validatesServer(of url: String) -> Bool {
        context.trust.validatesServer(of: URL(string: url))
    }

    /// Makes later requests use new connections. Cached addresses of host names are kept: when the network changes, the
    /// path monitor empties the resolver's cache.
    package func dropConnections() {
        context.pool.dropConnections()
    }

    /// Restarts the stalled requests to a port of a host. A request is stalled if the server has acknowledged no byte
    /// of it; see ``TransferPool/restartStalled(to:port:)``.
    package func restartStalled(to host: String, port: Int) {
        context.pool.restartStalled(to: host, port: port)
    }
}

extension SessionManager {
    static func makeRequest(
        _ url: any URLConvertible,
        _ method: HTTPMethod,
        _ parameters: Parameters?,
        _ encoding: any ParameterEncoding,
        _ headers: HTTPHeaders?
    ) -> Result<URLRequest, any Error> {
        Result {
            let request = try URLRequest(url: url, method: method, headers: headers)
            return try encoding.encode(request, with: parameters)
        }
    }

    func start(_ plan: RequestPlan) -> DataRequest { start(plan, as: DataRequest.init) }

    /// Creates a request. Calls the adapter on the caller's thread, and starts the request if the session starts
    /// requests immediately.
    func start<Kind: Request>(_ plan: RequestPlan, as make: (RequestCore) -> Kind) -> Kind {
        let hooks = context.hooks
        var plan = plan
        if let owner = hooks.failedRequestOwner, plan.policy.asksRetrier {
            plan.original = plan.original.map { $0.adding(owner.addedFields(for: $0)) }
        }
        let adapted = Result { try hooks.adapt(plan.original.get(), plan.policy) }
        let core = RequestCore(plan, firstRequest: adapted, hooks: hooks, context: context)
        let request = make(core)
        context.add(request)
        core.begin(request, starts: hooks.startsImmediately)
        return request
    }
}
