package import NIOHTTP1

/// The handlers of the API by method and path, as an immutable value.
package struct ControlRouter: Sendable {
    /// Handles one request in a separate task, so a handler that takes long delays no other request.
    ///
    /// The task is cancelled if the connection is closed before the response.
    package typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    /// Returns the class in which a complete request with these query items is served.
    package typealias Classifier = @Sendable (_ query: [ControlRequest.QueryItem]) -> ConnectionClass

    /// A method and a path, with the handler for them.
    package struct Route: Sendable {
        let method: HTTPMethod
        let path: String
        let access: Access
        /// The accepted names of the query, and those of them that may be repeated.
        var query: [String] = []
        var lists: [String] = []
        let handler: Handler
        fileprivate let classify: Classifier
        fileprivate let segments: [Segment]

        /// - Parameters:
        ///   - path: For example `/v1/requests/{id}`. A name in braces matches any one segment that is not empty.
        ///   - access: The least access that a caller must have.
        ///   - classify: Returns the class in which a request is served. Default: always ``ConnectionClass/call``.
        package init(
            _ method: HTTPMethod,
            _ path: String,
            access: Access,
            classify: @escaping Classifier = { _ in .call },
            _ handler: @escaping Handler
        ) {
            self.method = method
            self.path = path
            self.access = access
            self.classify = classify
            self.handler = handler
            segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(
                Segment.init
            )
        }

        /// Returns the path segments for the names in braces; `nil` if the path does not match.
        fileprivate func parameters(in path: [String]) -> [String: String]? {
            guard path.count == segments.count else { return nil }
            var parameters: [String: String] = [:]
            for (segment, text) in zip(segments, path) {
                switch segment {
                case .literal(let literal): if text != literal { return nil }
                case .parameter(let name):
                    if text.isEmpty { return nil }
                    parameters[name] = text
                }
            }
            return parameters
        }
    }

    fileprivate enum Segment {
        case literal(String)
        case parameter(String)

        init(_ text: Substring) {
            let isName = text.hasPrefix("{") && text.hasSuffix("}")
            self = isName ? .parameter(String(text.dropFirst().dropLast())) : .literal(String(text))
        }
    }

    /// In the order in which they are searched.
    let routes: [Route]
    private let access: AccessRules
    private let hosts: HostAllowList?

    /// Creates a router. Traps if a route is given twice, which is a programming error.
    ///
    /// - Parameters:
    ///   - access: Decides what each user may do. Default: root and the user of this process may do everything.
    ///   - hosts: The accepted values of the `Host` header. Default: `nil`, all.
    package init(
        _ routes: [Route],
        access: AccessRules = AccessRules(),
        hosts: HostAllowList? = nil
    ) {
        self.access = access
        self.hosts = hosts
        var seen: Set<String> = []
        for route in routes {
            let isNew = seen.insert("\(route.method.rawValue) \(route.path)").inserted
            precondition(isNew, "\(route.method) \(route.path) is routed twice")
        }
        self.routes = routes
    }

    /// Returns the class in which a complete request is served.
    func connectionClass(_ method: HTTPMethod, _ target: RequestTarget) -> ConnectionClass {
        route(method, target.segments)?.classify(target.query) ?? .call
    }

    private func route(_ method: HTTPMethod, _ segments: [String]) -> Route? {
        let method = method == .HEAD ? .GET : method
        return routes.first { $0.method == method && $0.parameters(in: segments) != nil }
    }

    /// Returns the user and the access of a client.
    func caller(_ peer: PeerCredentials?) -> Caller { access.policy.caller(peer) }

    /// Returns the problem of a client that may not connect, because its user has no access.
    func refusal(of caller: Caller) -> Problem {
        .forbidden(access.policy.refusal(of: caller, without: .none))
    }

    /// Returns the problem of a request for which the caller's access is not sufficient; `nil` if it is. The server asks
    /// before it reads a long body.
    func refusal(of method: HTTPMethod, _ target: RequestTarget, from peer: PeerCredentials?) -> Problem? {
        route(method, target.segments).flatMap { refusal(of: $0, to: caller(peer)) }
    }

    private func refusal(of route: Route, to caller: Caller) -> Problem? {
        guard caller.access < route.access else { return nil }
        return .forbidden(access.policy.refusal(of: caller, without: route.access))
    }

    /// Returns the response of the route's handler; 403 if the caller's access is not sufficient; 404 if no route has
    /// the path; 405 with `Allow` if routes have the path, but none of them has the method; 421 for a `Host` that is not
    /// accepted. HEAD uses the handler of GET.
    package func respond(to request: ControlRequest) async -> ControlResponse {
        if let problem = hosts?.problem(of: request) { return ControlResponse(problem) }
        let found = routes.compactMap { route in
            route.parameters(in: request.segments).map { (route: route, parameters: $0) }
        }
        guard !found.isEmpty else { return ControlResponse(.notFound(request.path)) }
        let method = request.method == .HEAD ? .GET : request.method
        guard let match = found.first(where: { $0.route.method == method }) else {
            return Self.refusal(of: request, allowing: found.map(\.route.method.rawValue))
        }
        var request = request
        request.caller = caller(request.peer)
        if let problem = refusal(of: match.route, to: request.caller) { return ControlResponse(problem) }
        request.parameters = match.parameters
        return await match.route.handler(request)
    }

    private static func refusal(of request: ControlRequest, allowing methods: [String]) -> ControlResponse {
        var allowed = Set(methods)
        if allowed.contains("GET") { allowed.insert("HEAD") }
        let list = allowed.sorted().joined(separator: ", ")
        var response = ControlResponse(.methodNotAllowed(request.method, request.path, allowed: list))
        response.headers.add(name: "allow", value: list)
        return response
    }
}

/// The names in the `Host` header that a TCP port accepts.
///
/// A web page of another site can make its own name resolve to 127.0.0.1 (DNS rebinding). The browser then treats the
/// responses of this server as those of the other site. Such a request has the name of the other site in `Host`.
package struct HostAllowList: Sendable {
    private let names: Set<String>

    /// - Parameter address: The address and port of the server. Besides it, `localhost` is accepted.
    package init(_ address: WebAddress) {
        let port = address.port
        names = ["\(address)", "localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)"]
    }

    /// Returns the problem of a request whose `Host` is not accepted; otherwise `nil`.
    func problem(of request: ControlRequest) -> Problem? {
        let hosts = request.headers["host"]
        guard hosts.count == 1, names.contains(hosts[0].lowercased()) else {
            return Problem(
                HTTPResponseStatus(statusCode: 421, reasonPhrase: "Misdirected Request"),
                code: "misdirected_request",
                detail: "the `Host` must be one of: \(names.sorted().joined(separator: ", "))"
            )
        }
        return nil
    }
}
