internal import NIOHTTP1

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
