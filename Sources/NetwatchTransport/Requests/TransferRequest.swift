package import NetwatchEventLoop

/// An HTTP request with all its options.
package struct TransferRequest: Sendable {
    /// A header field. It is sent with its name's case unchanged, and in the order of the request's list.
    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String
        /// Whether the value is an ``ExactText``, so that its private characters are sent as the bytes that they
        /// represent. Only for values that a server has sent. Default `false`: the value is sent as UTF-8.
        package var isExact: Bool

        package init(_ name: String, _ value: String, isExact: Bool = false) {
            self.name = name
            self.value = value
            self.isExact = isExact
        }
    }

    /// The absolute URL, `http` or `https`, in ASCII. The fragment is not sent.
    package var url: String
    /// The method, sent as written.
    package var method: String
    /// The header fields.
    ///
    /// If `Accept-Encoding` is present and not blank, the response body is decoded. The transfer fails with code
    /// 61 if the body has an encoding that cannot be decoded (``TransferCapabilities/decodableEncodings``).
    /// Without `Accept-Encoding`, the body is delivered as received.
    package var headers: [Header] = []
    /// The body; `nil` for none. Without a body, methods that usually have one send `Content-Length: 0`.
    package var body: TransferBody?
    /// The credentials to send when the server asks for them. Default `nil`: a 401 is returned as the response.
    package var credentials: TransferCredentials?
    /// The path of a unix socket, as an ``ExactText``. If it is set, the transfer connects to this socket instead of
    /// the URL's host, and the host is not looked up.
    package var unixSocketPath: String?
    /// The interface or local address to which the connection is bound. Default `nil`: the kernel chooses the route.
    ///
    /// A bound transfer always uses its own connection: it neither takes one from the pool nor returns it there. The
    /// name lookup is not bound.
    package var binding: SocketBinding?
    /// The addresses to connect to, each with a binding that replaces ``binding``. If they are set, the URL's host is
    /// not looked up. Default `nil`: the host is looked up. Ignored if the URL's host is an IP address.
    package var candidates: [ConnectionCandidate]?
    /// The time limit for name lookup, connection and TLS handshake together. Default 15 s.
    ///
    /// If the program must decide whether the server is trusted (``TrustCheck``), the connection after its decision has
    /// the same limit again, and the decision itself does not count.
    package var connectTimeout: Duration = .seconds(15)
    /// The maximum time in which a connected transfer neither sends nor receives a byte; `nil` for no limit. Default 60
    /// s.
    ///
    /// The engine checks it once a second, so the transfer may end up to two seconds late. The time of a pause does not
    /// count. The time in which a ``TransferBodySource`` has no data does count. It is also a limit for the program's
    /// decision whether the server is trusted, which takes at most 30 s.
    package var idleTimeout: Duration? = .seconds(60)
    /// The maximum time without a received byte while the transfer waits for the response. Default `nil`:
    /// ``idleTimeout`` applies.
    ///
    /// The wait begins when the kernel has accepted the whole request, and ends when the head of the response is
    /// complete. During the wait, this timeout replaces ``idleTimeout``. The engine also checks it once a second. When
    /// it expires, the transfer fails with a timeout (code 28) in the phase `response`.
    package var responseTimeout: Duration?
    /// The time limit for the whole transfer, including name lookup and pauses. Default `nil`: no limit.
    package var totalTimeout: Duration?
    /// The time limit from the delivery of the head to the end of the response. Default `nil`: no limit.
    ///
    /// When it expires, the transfer fails with a timeout (code 28) in the phase `response`. The engine checks it once
    /// a second. The time of pauses counts.
    package var bodyTimeout: Duration?
    /// Whether the transfer may use a pooled connection. Default `true`.
    ///
    /// If a reused connection ends before the first byte of the response, libcurl sends the request again by itself, up
    /// to five times. Set this to `false` for a request that must not arrive twice. The request then gets a new
    /// connection (`CURLOPT_FRESH_CONNECT`), on which libcurl does not send again.
    package var allowsConnectionReuse = true
    /// Whether libcurl may send the request again if a reused connection ends before the first byte of the response.
    /// Default `true`.
    ///
    /// With `false`, the transfer fails instead. A request that must not arrive twice can then use pooled connections.
    /// Has no effect if ``allowsConnectionReuse`` is `false`.
    package var allowsResending = true
    /// Whether an `https` transfer uses HTTP/1.1 even if the server offers HTTP/2 (`CURLOPT_HTTP_VERSION`). Default
    /// `false`: the server selects the version, unless HTTP/2 has failed there; see ``HTTP1Origins``.
    ///
    /// Such transfers have their own connection limit. They share no connections with others to the same host, unless
    /// HTTP/2 has failed there.
    package var usesHTTP1 = false
    /// How the server of an `https` URL must prove its identity. Default ``TransferTrust/standard``: as browsers
    /// require it.
    package var trust = TransferTrust.standard
    /// The priority among the transfers that wait for a connection, from 0 (last) to 1 (first). Default 0.5.
    package var priority: Float = 0.5
    /// The maximum length of the response body in bytes, after decoding. Default `nil`: no limit.
    package var maximumResponseBodyBytes: Int?

    package init(url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

extension TransferRequest {
    /// Whether libcurl may send the request more than once.
    var mayBeResent: Bool { allowsConnectionReuse && allowsResending }

    /// The priority clamped to its range; NaN becomes the default.
    var urgency: Float { priority.isNaN ? 0.5 : min(max(priority, 0), 1) }
}
