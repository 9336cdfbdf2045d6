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
        let handler: Handler
        fileprivate let classify: Classifier
        fileprivate let segments: [Segment]

        /// - Parameters:
        ///   - path: For example `/v1/requests/{id}`. A name in braces matches any one segment that is not empty.
        ///   - classify: Returns the class in which a request is served. Default: always ``ConnectionClass/call``.
        package init(
            _ method: HTTPMethod,
            _ path: String,
            classify: @escaping Classifier = { _ in .call },
            _ handler: @escaping Handler
        ) {
            self.method = method
            self.path = path
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

    private let routes: [Route]
    private let hosts: HostAllowList?

    /// Creates a router. Traps if a route is given twice, which is a programming error.
    ///
    /// - Parameter hosts: The accepted values of the `Host` header. Default: `nil`, all.
    package init(_ routes: [Route], hosts: HostAllowList? = nil) {
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
        let method = method == .HEAD ? .GET : method
        let route = routes.first { $0.method == method && $0.parameters(in: target.segments) != nil }
        return route?.classify(target.query) ?? .call
    }

    /// Returns the response of the route's handler; 404 if no route has the path; 405 with `Allow` if routes have the
    /// path, but none of them has the method; 421 for a `Host` that is not accepted. HEAD uses the handler of GET.
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
