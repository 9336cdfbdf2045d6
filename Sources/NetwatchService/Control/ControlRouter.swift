package import NIOHTTP1

/// Which handler answers which method of which path: a value, made once and never changed.
package struct ControlRouter: Sendable {
    /// Answers one request. It may take its time: nothing waits for it but the client.
    ///
    /// Its task is cancelled when the connection is closed before the answer.
    package typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    /// One method of one path.
    package struct Route: Sendable {
        let method: HTTPMethod
        let path: String
        let handler: Handler

        package init(_ method: HTTPMethod, _ path: String, _ handler: @escaping Handler) {
            self.method = method
            self.path = path
            self.handler = handler
        }
    }

    private let handlers: [String: [String: Handler]]

    /// A route given twice is a mistake in the program and traps.
    package init(_ routes: [Route]) {
        var handlers: [String: [String: Handler]] = [:]
        for route in routes {
            let previous = handlers[route.path, default: [:]].updateValue(
                route.handler,
                forKey: route.method.rawValue
            )
            precondition(previous == nil, "\(route.method) \(route.path) is routed twice")
        }
        self.handlers = handlers
    }

    /// The answer of the handler, or 404, or 405 with `Allow`. HEAD is answered by the handler of GET.
    package func respond(to request: ControlRequest) async -> ControlResponse {
        guard let methods = handlers[request.path] else {
            return ControlResponse(.notFound(request.path))
        }
        let fallback = request.method == .HEAD ? methods["GET"] : nil
        guard let handler = methods[request.method.rawValue] ?? fallback else {
            return Self.refusal(of: request, allowing: methods.keys)
        }
        return await handler(request)
    }

    private static func refusal(
        of request: ControlRequest,
        allowing methods: some Sequence<String>
    ) -> ControlResponse {
        var allowed = Set(methods)
        if allowed.contains("GET") { allowed.insert("HEAD") }
        let list = allowed.sorted().joined(separator: ", ")
        var response = ControlResponse(.methodNotAllowed(request.method, request.path, allowed: list))
        response.headers.add(name: "allow", value: list)
        return response
    }
}
