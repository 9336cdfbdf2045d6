package import NIOHTTP1

/// A complete request to the control API.
package struct ControlRequest: Sendable {
    /// A `name=value` pair of the query; `value` is `nil` if there is no `=`.
    package struct QueryItem: Hashable, Sendable {
        package let name: String
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    package let method: HTTPMethod
    /// The percent-decoded path without the query: `/v1/requests`.
    package let path: String
    /// The segments of the path between slashes. Each is decoded separately, so it may contain a slash.
    package let segments: [String]
    /// The values of the names in braces of the route, such as `id` in `/v1/requests/{id}`. Set by the router.
    package internal(set) var parameters: [String: String] = [:]
    /// The query items in their order, percent-decoded. A `+` is a literal plus (RFC 3986).
    package let query: [QueryItem]
    /// The header fields, at most ``ControlServer/Limits/headerBytes`` long.
    package let headers: HTTPHeaders
    /// The body, at most ``ControlServer/Limits/bodyBytes`` long.
    package let body: [UInt8]
    /// The process that sent the request; `nil` if it came over TCP.
    package let peer: PeerCredentials?
    /// The user who sent the request, and the access of that user. Set by the router.
    package internal(set) var caller = Caller(user: nil, access: .none)

    init(
        method: HTTPMethod,
        target: RequestTarget,
        headers: HTTPHeaders = [:],
        body: [UInt8] = [],
        peer: PeerCredentials?
    ) {
        self.method = method
        path = target.path
        segments = target.segments
        query = target.query
        self.headers = headers
        self.body = body
        self.peer = peer
    }
}
