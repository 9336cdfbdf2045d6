package import ClientCore
package import Foundation
internal import FoundationNetworking
package import NetwatchEventLoop
internal import NetwatchTransport

/// One attempt to send a queued request. The client performs a single HTTP transfer: it follows no redirect, and does
/// not retry after a failure.
package struct Attempt: Sendable {
    /// The body to send.
    package enum Body: Sendable {
        case none
        case data(Data)
        /// A body from the spool, verified by size and SHA-256. The file stays open until the attempt ends, so that no
        /// other file can take its place.
        case file(OpenedBody)
    }

    /// The request's id, for logs.
    package let id: String
    package let method: String
    package private(set) var url: String
    /// All header lines, including `Idempotency-Key`.
    package private(set) var headers: [QueueRequest.Header]
    package let body: Body
    /// Whether the server may receive the request twice without harm. If so, the attempt may reuse a pooled connection.
    /// When such a connection turns out to be dead, libcurl sends the request again by itself.
    package let mayBeSentTwice: Bool
    /// The timeouts of this attempt.
    package let timeouts: AttemptTimeouts
    /// The version of HTTP; `nil` for that of the session.
    package let httpVersion: HTTPVersion?
    /// Whether the previous attempt received status 421 (Misdirected Request): its connection led to the wrong server.
    /// This attempt then opens a new connection.
    package let isMisdirected: Bool
    /// The number of body bytes that a waiting caller accepts or that the expectation's rules need, whichever is more;
    /// `nil` if neither needs more than ``maximumResponseBytes``.
    package let responseLimit: Int?
    /// The interface and source address to use, because a constraint of the request requires them; `nil` if the kernel
    /// chooses. Such an attempt neither uses nor leaves a pooled connection.
    package let binding: SocketBinding?
    /// Returns whether the attempt may still be sent. A constraint may be lost while the program's code adds the
    /// credential and adapts the request, so the sender asks again directly before the transfer. For plain `http` with a
    /// captive portal probe, the path must also have been probed since its last change, without finding a portal.
    package let mayStillBeSent: @Sendable () async -> Bool
    /// The name of the credential to add before the attempt is sent; `nil` for none, or if it was added.
    package private(set) var credential: String?
    /// Where the credential that was added may be sent; `nil` if there is none.
    package private(set) var permit: CredentialPermit?
    /// The secrets that were added to the attempt, and to those that were made of it.
    package let secrets = AttemptSecrets()
    /// The session's request for this attempt. A credential receives it with a response of status 401.
    package private(set) var sent: SentRequest?

    package init(
        id: String,
        method: String,
        url: String,
        headers: [QueueRequest.Header],
        body: Body,
        mayBeSentTwice: Bool,
        timeouts: AttemptTimeouts = AttemptTimeouts(),
        httpVersion: HTTPVersion? = nil,
        isMisdirected: Bool = false,
        responseLimit: Int? = nil,
        binding: SocketBinding? = nil,
        credential: String? = nil,
        mayStillBeSent: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.id = id
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.mayBeSentTwice = mayBeSentTwice
        self.timeouts = timeouts
        self.httpVersion = httpVersion
        self.isMisdirected = isMisdirected
        self.responseLimit = responseLimit
        self.binding = binding
        self.credential = credential
        self.mayStillBeSent = mayStillBeSent
    }

    /// Returns the attempt with the URL and the header lines to which its credential was added.
    func authorized(url: String, headers: [QueueRequest.Header], _ permit: CredentialPermit) -> Attempt {
        var attempt = self
        (attempt.url, attempt.headers, attempt.credential, attempt.permit) = (url, headers, nil, permit)
        attempt.sent = SentRequest()
        return attempt
    }

    /// Returns whether two attempts of a request have the same credential.
    func hasCredential(of other: Attempt) -> Bool {
        url == other.url && headers == other.headers && permit?.identity == other.permit?.identity
    }

    /// The time limit for the whole attempt. Without an explicit total timeout, it grows with the size of the body.
    package var longest: Duration {
        guard case .file(let file) = body else { return timeouts.longest(sending: 0) }
        return timeouts.longest(sending: file.body.size)
    }

    /// The maximum number of bytes that are kept of a response's body: 64 KiB.
    package static let maximumResponseBytes = 64 * 1024

    /// The number of bytes of the response's body that the attempt receives. They include those that are needed to find
    /// a secret at the end of the kept part, at most 64 KiB.
    var receivedResponseBytes: Int {
        let searched = Self.maximumResponseBytes + min(secrets.redactor.lookahead, Self.maximumResponseBytes)
        return max(searched, responseLimit ?? 0)
    }

    /// The time limit for the rest of the response after its status has arrived. The status alone decides the outcome,
    /// so the attempt must not occupy a slot for the sake of the body.
    package static let bodyTimeout: Duration = .seconds(10)
}

/// The request of a session that sends an attempt. The sender sets it before it waits for the response.
package final class SentRequest: Sendable {
    private let state = Lock<Request?>(nil)

    package init() {}

    package var request: Request? { state.withLock { $0 } }

    package func set(_ request: Request) { state.withLock { $0 = request } }
}

/// The secrets that credentials, the session and its adapter added to an attempt.
///
/// The senders record them before the attempt is sent. An attempt that is sent twice, because its credential was
/// refreshed, has the secrets of both. The outcome itself is not changed before it has been classified: rules for the
/// response are evaluated for what the server sent.
package final class AttemptSecrets: Sendable {
    private struct State {
        var secrets: Set<Redactor.Secret> = []
        var isBodyEncoded = false
    }

    private let state = Lock(State())

    func add(_ secrets: Set<Redactor.Secret>) {
        state.withLock { $0.secrets.formUnion(secrets) }
    }

    /// Records that the response's body has a content coding, which nothing decodes.
    func recordEncodedBody() {
        state.withLock { $0.isBodyEncoded = true }
    }

    /// Removes the secrets that were recorded until now.
    var redactor: Redactor {
        let state = state.withLock { $0 }
        return state.secrets.isEmpty ? .none : Redactor(state.secrets, isBodyEncoded: state.isBodyEncoded)
    }
}

/// Where a credential that was added to an attempt may be sent. The sender checks it for every transfer, after
/// everything that can change the request's URL.
package struct CredentialPermit: Sendable {
    /// The name of the credential.
    package let name: String
    private let origins: [OriginPattern]
    /// The client's certificate and key, if they are the credential.
    package let identity: ClientIdentity?

    init(name: String, origins: [OriginPattern], identity: ClientIdentity? = nil) {
        self.name = name
        self.origins = origins
        self.identity = identity
    }

    func permits(_ origin: TransferOrigin) -> Bool { origins.contains { $0.matches(origin) } }

    /// The reason to withhold a request to an origin that the credential does not list.
    ///
    /// - Parameter origin: `nil` if the URL has none.
    func refusal(of origin: TransferOrigin?) -> WithheldReason {
        let place = origin.map { "`\($0)`" } ?? "this URL"
        let list = origins.map { "\($0)" }.joined(separator: ", ")
        return WithheldReason(
            .change,
            "the credential `\(name)` must not be sent to \(place); accepted: \(list)"
        )
    }
}

/// What ``FailureTable`` must know about a request and its attempt, in addition to the outcome.
package struct AttemptContext: Hashable, Sendable {
    package let origin: Origin
    /// Whether the server may receive the request twice without harm.
    package let mayBeSentTwice: Bool
    /// Whether the request has an idempotency key.
    package let hasKey: Bool
    /// Whether there was no path to the host when the attempt began, or there is none now that it has failed.
    package var gateIsDown: Bool
    /// Whether the path to the host changed during the attempt: it was lost and found again, or another path replaced
    /// it.
    package var pathHasChanged = false
    /// Whether the attempt was bound to an interface and a source address; see ``Attempt/binding``.
    package var isBound = false
    /// Whether a failure to connect is retried fast and not counted, because the path to the host was found a short
    /// time ago.
    package var isReconnecting = false
    /// The request's `Accept` header; `nil` if there is none.
    package let accept: String?
    /// The responses that count as a delivery.
    package var expectation: Expectation
    /// The caller's rules for statuses, those that take precedence first.
    package var statusRules: [StatusRules] = []
    /// The HTTP status of the previous attempt; `nil` if it received none.
    package let lastStatus: Int?
    /// Whether the session validates the certificate of an `https` server. If it does not, a response may come from any
    /// device on the path.
    package var validatesServer = true
    /// The time since the first of consecutive 409 responses; `nil` if the previous response was not a 409.
    package var conflictAge: Duration?

    package init(
        origin: Origin,
        mayBeSentTwice: Bool,
        hasKey: Bool,
        gateIsDown: Bool,
        accept: String?,
        expectation: Expectation = .success,
        lastStatus: Int? = nil
    ) {
        self.origin = origin
        self.mayBeSentTwice = mayBeSentTwice
        self.hasKey = hasKey
        self.gateIsDown = gateIsDown
        self.accept = accept
        self.expectation = expectation
        self.lastStatus = lastStatus
    }
}

extension TransferPolicy {
    /// Creates the policy of a request that the session's adapter and interceptor have adapted.
    init(of attempt: Attempt, bodyTimeout: Duration) {
        self = .singleTransfer(
            maximumResponseBytes: attempt.receivedResponseBytes,
            totalTimeout: attempt.longest,
            allowsConnectionReuse: attempt.mayBeSentTwice && !attempt.isMisdirected
        )
        isAdapted = true
        connectTimeout = attempt.timeouts.connect
        responseTimeout = attempt.timeouts.response
        httpVersion = attempt.httpVersion
        // A caller that waits for the response needs all of it, and so do rules on JSON members.
        self.bodyTimeout = attempt.responseLimit == nil ? bodyTimeout : attempt.longest
        binding = attempt.binding
        identity = attempt.permit?.identity
        permitsOrigin = attempt.permit?.permits
    }
}

extension URLRequest {
    /// Creates the request of an attempt, without a body from the spool. Returns `nil` if `URL` does not accept the
    /// URL.
    ///
    /// The client converts it to libcurl's options again. Adapters, event monitors and `cURLDescription` of the queue's
    /// session need a `URLRequest`, as in Alamofire.
    init?(_ attempt: Attempt) {
        var body: Data?
        if case .data(let data) = attempt.body { body = data }
        guard
            let request = try? URLRequest(
                method: attempt.method,
                url: attempt.url,
                headers: attempt.headers,
                body: body
            )
        else { return nil }
        self = request
    }
}
