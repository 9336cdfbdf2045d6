package import NetwatchEventLoop

/// An HTTP request with all its options.
package struct TransferRequest: Sendable {
    /// A header field. Names keep their case, and fields their order.
    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// An absolute `http` or `https` URL in ASCII. A fragment is not sent.
    package var url: String
    /// The method, sent as written.
    package var method: String
    /// The header fields. A non-blank `Accept-Encoding` asks for a body in these encodings, and the body is then
    /// decoded. The transfer fails with code 61 if this libcurl cannot decode it; see
    /// ``TransferCapabilities/decodableEncodings``. Without `Accept-Encoding` nothing is decoded.
    package var headers: [Header] = []
    /// The body; `nil` sends none, or `Content-Length: 0` with methods that usually have a body.
    package var body: TransferBody?
    /// The credentials to send when the server asks for them. Default `nil`: a 401 is returned as the response.
    package var credentials: TransferCredentials?
    /// The path of a unix socket to connect to instead of the URL's host, which is then never looked up.
    package var unixSocketPath: String?
    /// Binds the connection to an interface or address instead of the route that the kernel would choose. Default
    /// `nil`: the kernel chooses. A bound transfer uses a separate connection: it neither takes one from the pool nor
    /// leaves one there. The name lookup is not bound.
    package var binding: SocketBinding?
    /// The addresses of the URL's host, each with a binding that replaces ``binding``. The host is then not looked up.
    /// Default `nil`: the host is looked up. Ignored if the host is an address.
    package var candidates: [ConnectionCandidate]?
    /// The time allowed for name lookup, connection and TLS handshake together. Default 15 s.
    package var connectTimeout: Duration = .seconds(15)
    /// The maximum time without any byte sent or received once connected; `nil` for no limit. Default 60 s. It is
    /// checked once a second, so it may take up to two seconds longer. A pause does not count; waiting for a
    /// ``TransferBodySource`` does.
    package var idleTimeout: Duration? = .seconds(60)
    /// The maximum time without any received byte while the response is awaited: after the kernel has accepted the
    /// whole request, and until the head of the response is complete. Default `nil`: ``idleTimeout`` applies.
    ///
    /// It replaces ``idleTimeout`` in that time and is checked as often. When it expires, the transfer fails with a
    /// timeout (code 28) in the phase `response`.
    package var responseTimeout: Duration?
    /// The time allowed for the whole transfer, including name lookup and pauses. Default `nil`: no limit.
    package var totalTimeout: Duration?
    /// The time allowed from the delivered head to the end of the response. Default `nil`: no limit. When it expires,
    /// the transfer fails with a timeout (code 28) in the phase `response`. It is checked once a second; pauses count.
    package var bodyTimeout: Duration?
    /// Whether a pooled connection may be used.
    ///
    /// libcurl sends a request again, up to five times and without being asked, if a reused connection ends before the
    /// first byte of the response. So a request that must not arrive twice uses a new connection
    /// (`CURLOPT_FRESH_CONNECT`), on which libcurl does not send again.
    package var allowsConnectionReuse = true
    /// Whether libcurl may send the request again if a reused connection ends before the first byte of the response.
    /// Default true.
    ///
    /// With `false`, a request that must not arrive twice can use pooled connections: it fails instead. Without effect
    /// when ``allowsConnectionReuse`` is false.
    package var allowsResending = true
    /// What the server must prove if the URL is `https`. Default: what browsers require.
    package var trust = TransferTrust.standard
    /// The priority among waiting transfers, from 0 (last) to 1 (first). Default 0.5.
    package var priority: Float = 0.5
    /// The maximum number of bytes of the decoded response body. Default `nil`: no limit.
    package var maximumResponseBodyBytes: Int?

    package init(url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

extension TransferRequest {
    /// Whether the server may receive the request more than once.
    var mayBeResent: Bool { allowsConnectionReuse && allowsResending }

    /// The priority clamped to its range; NaN becomes the default.
    var urgency: Float { priority.isNaN ? 0.5 : min(max(priority, 0), 1) }
}
