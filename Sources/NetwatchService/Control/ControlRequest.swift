package import Glibc
package import NIOHTTP1

/// One complete request to the control API.
package struct ControlRequest: Sendable {
    /// `name=value` of the query; `value` is `nil` where there is no `=`.
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
    /// The path between its slashes, each part decoded by itself.
    package let segments: [String]
    /// What stands in the path where its route has a name in braces; set by the router.
    package internal(set) var parameters: [String: String] = [:]
    /// The query in its order, percent-decoded. A `+` is a plus, as RFC 3986 has it.
    package let query: [QueryItem]
    package let headers: HTTPHeaders
    /// At most ``ControlServer/Limits/bodyBytes``.
    package let body: [UInt8]
    package let peer: PeerCredentials

    init(
        method: HTTPMethod,
        target: RequestTarget,
        headers: HTTPHeaders = [:],
        body: [UInt8] = [],
        peer: PeerCredentials
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

/// Who connected, as the kernel noted at `connect(2)` (`SO_PEERCRED` of `unix(7)`).
package struct PeerCredentials: Hashable, Sendable {
    package let pid: pid_t
    package let uid: uid_t
    package let gid: gid_t

    package init(pid: pid_t, uid: uid_t, gid: gid_t) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
    }
}
