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
    /// The path, percent-decoded, without the query: `/v1/requests`.
    package let path: String
    /// The path, split at its slashes; each segment is decoded separately.
    package let segments: [String]
    /// The path segments that match the names in braces of the route. Set by the router.
    package internal(set) var parameters: [String: String] = [:]
    /// The query items in their order, percent-decoded. A `+` is a literal plus (RFC 3986).
    package let query: [QueryItem]
    /// The body, at most ``ControlServer/Limits/bodyBytes`` long.
    package let body: [UInt8]
    package let peer: PeerCredentials

    init(
        method: HTTPMethod,
        target: RequestTarget,
        body: [UInt8] = [],
        peer: PeerCredentials
    ) {
        self.method = method
        path = target.path
        segments = target.segments
        query = target.query
        self.body = body
        self.peer = peer
    }
}
