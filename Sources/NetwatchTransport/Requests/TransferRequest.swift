internal import CNetwatchCurl
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

/// The credentials that a transfer sends when the server asks for them.
///
/// The request is first sent without credentials. If the response is a 401, the request is sent again with the
/// credentials, once. The engine does not remember the challenge, so each transfer begins without credentials again.
///
/// NTLM and Negotiate authenticate the connection instead of the request (RFC 4559 §6). libcurl reuses such a
/// connection only for transfers with the same credentials.
///
/// Credentials in the URL take precedence.
package struct TransferCredentials: Hashable, Sendable {
    /// A set of authentication schemes. libcurl selects the strongest one that the server supports.
    package struct Schemes: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Basic (RFC 7617): sends the password in plain text.
        package static let basic = Schemes(rawValue: 1)
        /// Digest (RFC 7616): sends a proof that the client knows the password.
        package static let digest = Schemes(rawValue: 2)
        package static let ntlm = Schemes(rawValue: 4)
        /// Negotiate (RFC 4559): sends a Kerberos ticket of the user who runs this process. `user` and `password` are
        /// ignored.
        package static let negotiate = Schemes(rawValue: 8)

        package static let all: Schemes = [.basic, .digest, .ntlm, .negotiate]

        // The function of `OptionSet` is not specialized in other modules, where it is slow.
        package var isEmpty: Bool { rawValue == 0 }
    }

    package var user: String
    package var password: String
    package var schemes: Schemes
    /// Whether the request carries the credentials from the start, without waiting for a 401. Set it if the server has
    /// asked for them before. Default `false`.
    ///
    /// This works only if ``schemes`` is ``Schemes/basic``. All other schemes must answer a new challenge each time.
    package var isPreemptive: Bool

    package init(
        user: String,
        password: String,
        schemes: Schemes = .all,
        isPreemptive: Bool = false
    ) {
        self.user = user
        self.password = password
        self.schemes = schemes
        self.isPreemptive = isPreemptive
    }

    /// The value of `CURLOPT_HTTPAUTH`.
    var mask: Int {
        isPreemptive && schemes == .basic ? Int(netwatch_auth_basic) : schemes.mask
    }
}

extension TransferCredentials.Schemes {
    /// Creates the schemes of libcurl's `CURLAUTH_…` bits. Other bits are ignored.
    init(mask: Int) {
        let bits = UInt(bitPattern: mask)
        self.init(rawValue: 0)
        if bits & netwatch_auth_basic != 0 { insert(.basic) }
        if bits & netwatch_auth_digest != 0 { insert(.digest) }
        if bits & netwatch_auth_ntlm != 0 { insert(.ntlm) }
        if bits & netwatch_auth_negotiate != 0 { insert(.negotiate) }
    }

    /// The value of `CURLOPT_HTTPAUTH`.
    var mask: Int {
        // With a single scheme, libcurl would send the credentials before the server has asked. `netwatch_auth_only`
        // prevents that.
        var mask = netwatch_auth_only
        if contains(.basic) { mask |= netwatch_auth_basic }
        if contains(.digest) { mask |= netwatch_auth_digest }
        if contains(.ntlm) { mask |= netwatch_auth_ntlm }
        if contains(.negotiate) { mask |= netwatch_auth_negotiate }
        return Int(mask)
    }
}

/// The times until which a transfer that libcurl runs must have reached its milestones.
///
/// The engine judges them, not libcurl (`CURLOPT_TIMEOUT_MS`): libcurl compares the time with its timeouts before it
/// reads what has arrived. After the process was stopped for longer than a timeout, it would discard the response.
struct TransferDeadlines {
    /// The end of the time for the connection and the TLS handshake.
    let connection: BootInstant
    /// The end of the time for the whole transfer; `nil` for no limit.
    let end: BootInstant?
}

/// The header fields that contain secrets, by their lower-case names.
///
/// The list has names, and no patterns such as `*-token` or `*-key`: `X-Page-Token`, `X-Routing-Key` and
/// `X-Idempotency-Key` contain no secrets. The signature of a single request, such as `X-Hub-Signature-256`, is not a
/// secret either, because it is not valid for another request.
package enum SecretHeaderFields {
    /// The fields of a request that contain credentials or cookies by RFC 9110 §11 and RFC 6265.
    package static let standard: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    /// The fields that APIs use for keys and tokens. Names that several APIs share come first.
    private static let ofAPIs: Set<String> = [
        "x-api-key", "api-key", "apikey", "x-apikey", "x-api-token", "x-auth-token", "x-auth-key",
        "x-access-token", "x-access-key", "x-secret-key", "x-session-token", "x-auth", "x-session-id",
        // GitLab, HashiCorp, Cloudflare, AWS, Google, Azure, Datadog, Honeycomb, Shopify, RapidAPI, Docker, Sentry
        "private-token", "job-token", "deploy-token", "x-gitlab-token", "x-vault-token", "x-consul-token",
        "x-nomad-token", "x-auth-user-service-key", "x-amz-security-token", "x-goog-api-key",
        "x-goog-iam-authorization-token", "ocp-apim-subscription-key", "x-functions-key", "dd-api-key",
        "dd-application-key", "x-honeycomb-team", "x-shopify-access-token", "x-rapidapi-key",
        "x-registry-auth", "x-sentry-auth",
    ]

    /// The fields of a request that contain credentials or cookies: the standard fields, and the fields that many APIs
    /// use for keys and tokens.
    package static let request = standard.union(ofAPIs)

    /// The fields of requests and responses that contain credentials or cookies.
    package static let all = request.union(["set-cookie"])

    /// The fields of a request that must not be sent to another origin: those with secrets, and `Host`.
    package static let originBound = request.union(["host"])
}
