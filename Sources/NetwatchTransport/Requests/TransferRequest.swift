package import NetwatchEventLoop

/// One HTTP transfer to make: everything libcurl is told, as a value.
package struct TransferRequest: Sendable {
    /// A header field as it is sent: names keep their case, fields their order.
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
    /// The method, sent as it is written.
    package var method: String
    /// An `Accept-Encoding` that is not blank asks for a body in these codings, which is decoded then, unless
    /// this libcurl cannot (code 61): ``TransferCapabilities/decodableEncodings``. Without one nothing is decoded.
    package var headers: [Header] = []
    /// The body; `nil` sends none, and `Content-Length: 0` with the methods that usually have one.
    package var body: TransferBody?
    /// Who to say that the request comes from, when the server asks; `nil`, the default, leaves a 401 what it
    /// is.
    package var credentials: TransferCredentials?
    /// A unix socket to connect to instead of the URL's host, which is then never looked up.
    package var unixSocketPath: String?
    /// The way that the packets take, in place of the one that the kernel would choose; `nil`, the default,
    /// leaves it to the kernel. A transfer with a way has connections of its own: it takes none from the pool
    /// and leaves none there. The name lookup is not tied to it.
    package var binding: SocketBinding?
    /// The addresses of the URL's host, and the way to each in place of ``binding``. The host is not looked up then; `nil`,
    /// the default, looks it up. A host that is an address itself stays what it is.
    package var candidates: [ConnectionCandidate]?
    /// How long the name lookup, the connection and the TLS handshake may take together. Default 15 s.
    package var connectTimeout: Duration = .seconds(15)
    /// How long no byte may go either way once connected; `nil` is for ever. Default 60 s. It is looked at once a
    /// second, so that it may take up to two seconds longer. A pause does not count; waiting for a
    /// ``TransferBodySource`` does.
    package var idleTimeout: Duration? = .seconds(60)
    /// How long no byte of the answer may come once all of the request was handed to the kernel, until the head of the
    /// answer is complete. The end is a timeout (code 28) in the phase `response`. It takes the place of ``idleTimeout`` in
    /// that time and is looked at as often; `nil`, the default, leaves that one in force.
    package var responseTimeout: Duration?
    /// How long the whole transfer may take, name lookup and pauses included; `nil`, the default, is for ever.
    package var totalTimeout: Duration?
    /// How long the response may take after the head that the caller gets; `nil`, the default, is for ever. The end is
    /// a timeout (code 28) in the phase `response`. It is looked at once a second; pauses count.
    package var bodyTimeout: Duration?
    /// Whether a pooled connection may be used.
    ///
    /// libcurl sends a request again, up to five times and unasked, when a reused connection ends before
    /// the first byte of the response. A request that must not arrive twice therefore takes a new
    /// connection (`CURLOPT_FRESH_CONNECT`), on which nothing is sent again.
    package var allowsConnectionReuse = true
    /// Whether libcurl may send the request again when a reused connection ends before the first byte of the response.
    /// `false` keeps pooled connections usable for a request that must not arrive twice: it fails instead. Default true;
    /// without effect when ``allowsConnectionReuse`` is false.
    package var allowsResending = true
    /// What the server has to prove when the URL is an `https` one. Default: what browsers ask for.
    package var trust = TransferTrust.standard
    /// How soon it is to be begun when others wait too, 0 (last) to 1 (first). Default 0.5.
    package var priority: Float = 0.5
    /// How many bytes of body the response may have, decoded; `nil`, the default, is any number.
    package var maximumResponseBodyBytes: Int?

    package init(url: String, method: String = "GET") {
        self.url = url
        self.method = method
    }
}

extension TransferRequest {
    /// Whether the server may receive the request more than once.
    var mayBeResent: Bool { allowsConnectionReuse && allowsResending }

    /// The priority within its range; what is no number is the default.
    var urgency: Float { priority.isNaN ? 0.5 : min(max(priority, 0), 1) }
}
