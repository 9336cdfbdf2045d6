package import ClientCore
internal import Dispatch
package import Foundation
package import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// Sends attempts through a session. Each attempt is one request of the session.
package struct SessionSender: AttemptSender {
    private let ownSession: SessionManager
    private let bodyTimeout: Duration
    private let adapterCalls: AdapterCalls

    /// - Parameters:
    ///   - session: The session that sends the attempts.
    ///   - bodyTimeout: The maximum time for reading the rest of a response once its status is known. Default 10 s.
    ///   - adapterTimeout: The maximum time for the session's adapter and interceptor to adapt an attempt. Default 30 s.
    ///   - clock: The clock of `adapterTimeout`.
    package init(
        session: SessionManager,
        bodyTimeout: Duration = Attempt.bodyTimeout,
        adapterTimeout: Duration = .seconds(30),
        clock: some Clock<Duration> = ContinuousClock()
    ) {
        ownSession = session
        self.bodyTimeout = bodyTimeout
        adapterCalls = AdapterCalls(of: session, timeout: adapterTimeout, clock: clock)
    }

    package var session: SessionManager? { ownSession }

    package func send(_ attempt: Attempt) async -> AttemptOutcome {
        guard let request = URLRequest(attempt) else {
            // 3 is CURLE_URL_MALFORMAT. The queue has accepted the URL, so this happens only if `URL` parses it
            // differently.
            return .failure(AttemptFailure(code: 3, phase: .resolve, message: "malformed URL"))
        }
        do {
            let adapted = try await adapterCalls.adapted(request)
            if let reason = attempt.refusal(of: adapted, insteadOf: request) { return .withheld(reason) }
            guard await attempt.mayStillBeSent() else { return .unsent }
            let fields = ownSession.sentFields(of: adapted)
            attempt.secrets.add(AddedSecrets(adapted, fields, besides: attempt).values)
            let outcome = await send(adapted, of: attempt)
            if outcome.isEncoded, !fields.decodeBody { attempt.secrets.recordEncodedBody() }
            return outcome
        } catch let reason as WithheldReason {
            return .withheld(reason)
        } catch is CancellationError where Task.isCancelled {
            return .failure(.cancelledUnsent)
        } catch {
            // Nothing was sent, so the error must not be classified like the error of a transfer: `invalidURL` would
            // make the request dead, and `URLError.cancelled` could hold it. For the secrets in the error, see
            // `AddedSecrets`.
            let words = "the adapter of the queue's session failed: \(error.storedText)"
            return .withheld(WithheldReason(.retry, words))
        }
    }

    private func send(_ request: URLRequest, of attempt: Attempt) async -> AttemptOutcome {
        let transfer = ownSession.transfer(
            request,
            body: attempt.body.kept,
            policy: TransferPolicy(of: attempt, bodyTimeout: bodyTimeout)
        )
        attempt.sent?.set(transfer)
        let result = await transfer.response()
        if let permit = attempt.permit, let refused = result.error as? OriginNotPermitted {
            return .withheld(permit.refusal(of: refused.origin))
        }
        let outcome = AttemptOutcome(result, of: attempt)
        return attempt.permit?.refusal(in: outcome).map(AttemptOutcome.withheld) ?? outcome
    }

    package func dropConnections() async {
        ownSession.dropConnections()
    }

    package func restartStalled(to endpoint: Endpoint) {
        ownSession.restartStalled(to: endpoint.host, port: endpoint.port)
    }

    package func validatesServer(of url: String) -> Bool {
        ownSession.validatesServer(of: url)
    }
}

extension Attempt {
    /// Returns why the adapted request of a bound attempt must not be sent, if the adapter has changed the host;
    /// otherwise `nil`.
    ///
    /// The binding belongs to the path to the original host. Without it, the request could be sent over an interface
    /// that does not meet its constraints. With it, another host might not be reachable.
    fileprivate func refusal(of adapted: URLRequest, insteadOf original: URLRequest) -> WithheldReason? {
        guard binding != nil, adapted.url?.host?.lowercased() != original.url?.host?.lowercased() else {
            return nil
        }
        return WithheldReason(
            .retry,
            "the adapter of the queue's session changed the host of a request that requires an unmetered connection or "
                + "a kind of interface; only the path to the original host is known"
        )
    }
}

extension AddedSecrets {
    /// - Parameters:
    ///   - request: The adapted request.
    ///   - fields: The fields that are sent: those of the request and of the session. The fields that the session adds
    ///     to every request describe the program; only those with certain secrets count.
    fileprivate init(_ request: URLRequest, _ fields: [TransferRequest.Header], besides attempt: Attempt) {
        let own = Set((request.allHTTPHeaderFields ?? [:]).keys.map { $0.lowercased() })
        let added = fields.filter {
            let name = $0.name.lowercased()
            return own.contains(name) || SecretHeaderFields.request.contains(name)
        }
        self.init(
            url: request.url?.absoluteString ?? attempt.url,
            headers: added.map { QueueRequest.Header(name: $0.name, value: $0.value) },
            besides: attempt,
            by: .session
        )
    }
}

extension [TransferRequest.Header] {
    /// Whether the client removes the content coding of the response; see ``TransferRequest/headers``.
    fileprivate var decodeBody: Bool {
        contains { $0.name.lowercased() == "accept-encoding" && $0.value.contains { !$0.isWhitespace } }
    }
}

extension AttemptOutcome {
    /// Whether the body was sent with a content coding.
    fileprivate var isEncoded: Bool {
        guard case .response(_, let headers, _, _) = self else { return false }
        return headers.contains { name, value in
            name.lowercased() == "content-encoding" && !["", "identity", "none"].contains(value.lowercased())
        }
    }
}

extension CredentialPermit {
    /// Returns the reason if the client certificate cannot be used or the server refused it (`CURLcode` 58); `nil` for
    /// any other outcome. The reason concerns only the requests with this credential, and not their lane.
    fileprivate func refusal(in outcome: AttemptOutcome) -> WithheldReason? {
        guard identity != nil, case .failure(let failure) = outcome, failure.code == 58 else { return nil }
        return WithheldReason(
            .change,
            "the server did not accept the client certificate of the credential `\(name)`: \(failure.message)"
        )
    }
}

extension Attempt.Body {
    /// The body to upload from a file; `nil` for a body in memory.
    ///
    /// The file is sent with a `Content-Length`. libcurl must be able to read it again from the beginning: if a reused
    /// connection turns out to be dead, libcurl sends the request again on a new one.
    fileprivate var kept: ReplayableBody? {
        guard case .file(let file) = self else { return nil }
        return ReplayableBody(length: file.body.size) { file.makeReader() }
    }
}

extension AttemptOutcome {
    fileprivate init(_ result: DefaultDataResponse, of attempt: Attempt) {
        let failure = result.error?.transferFailure
        // If the body is incomplete because of our limits or a lost connection, the response's status still counts.
        guard let response = result.response, failure?.isAboutBodyOnly ?? (result.error == nil) else {
            var ended = AttemptFailure(result.error, failure, status: result.response?.statusCode)
            ended.overrun = failure.flatMap { attempt.overrun($0, status: ended.status) }
            self = .failure(ended)
            return
        }
        self = .response(
            status: response.statusCode,
            headers: response.headerFields,
            body: result.data ?? Data(),
            isTruncated: failure != nil
        )
    }
}

extension HTTPURLResponse {
    /// The header fields by name, in no particular order.
    fileprivate var headerFields: [(String, String)] {
        allHeaderFields.compactMap { name, value in
            (name as? String).flatMap { name in (value as? String).map { (name, $0) } }
        }
    }
}

extension ReceivedResponse {
    package init(_ response: HTTPURLResponse, _ body: Data) {
        self.init(status: response.statusCode, headers: response.headerFields, body: body)
    }
}

extension Attempt {
    /// Returns the timeout that ended the attempt between the end of the request and the beginning of the response.
    ///
    /// - Returns: The response timeout if the engine reports that the response is late. Any other
    ///   CURLE_OPERATION_TIMEDOUT (28) in this phase is libcurl's total timeout. `nil` if no timeout ended the attempt.
    fileprivate func overrun(_ failure: TransferFailure, status: Int?) -> Duration? {
        guard failure.code == 28, failure.phase == .response, status == nil else { return nil }
        return failure.isResponseLate ? timeouts.response : longest
    }
}

extension TransferFailure {
    /// Whether the failure of a transfer with a response concerns only the body.
    ///
    /// CURLE_FILESIZE_EXCEEDED (63) and CURLE_OPERATION_TIMEDOUT (28) are our limits. CURLE_PARTIAL_FILE (18) is a
    /// connection that ended early.
    fileprivate var isAboutBodyOnly: Bool { [63, 28, 18].contains(code) }

    /// Whether nothing was sent because this machine was short of a resource.
    ///
    /// A timeout (28) in the prepare phase counts too, because the transfer was still waiting for a resolver thread or
    /// for other transfers.
    fileprivate var isLocal: Bool {
        isLocalShortage || (phase == .prepare && code == 28) || (mayHideShortage && DescriptorSupply.isShort)
    }

    /// Whether a shortage of descriptors may have caused the error.
    ///
    /// When libcurl, OpenSSL or the C library cannot open a file or a socket, they report a wrong configuration, an
    /// unknown issuer or an unknown name, without an error number. Timeouts (28) and cancelled transfers (42) have
    /// other causes.
    private var mayHideShortage: Bool { bytesSent == 0 && osErrno == 0 && code != 28 && code != 42 }
}

extension TransferFailure {
    /// Whether the server refused the client's certificate after the handshake.
    ///
    /// In TLS 1.3, libcurl reports this as a lost connection: CURLE_SEND_ERROR (55) or CURLE_RECV_ERROR (56). The queue
    /// treats it as a configuration error, like a certificate that libcurl cannot use (CURLE_SSL_CERTPROBLEM, 58).
    ///
    /// An alert during the handshake (CURLE_SSL_CONNECT_ERROR) is not such a refusal. Any device on the path may have
    /// sent the alert, so it counts as a failure of the path.
    fileprivate var isServersRefusal: Bool {
        clientCertificateRefusal != nil && (code == 55 || code == 56)
    }
}

extension AttemptFailure {
    /// Creates the failure of an attempt.
    ///
    /// - Parameters:
    ///   - error: The error of the session's request.
    ///   - failure: The failure of the transfer; `nil` if the session failed the request without a transfer.
    ///   - status: The status of the response; `nil` if no response had begun.
    init(_ error: (any Error)?, _ failure: TransferFailure?, status: Int?) {
        guard let failure else {
            self.init(withoutTransfer: error)
            return
        }
        self.init(
            code: failure.isServersRefusal && status == nil ? 58 : failure.code,
            errno: failure.osErrno,
            phase: Phase(failure.phase),
            bytesSent: failure.bytesSent,
            status: status,
            message: failure.message,
            isLocalShortage: failure.isLocal
        )
        isUnprocessed = failure.isUnprocessed
    }
}

extension Error {
    /// The message of the error to store. The description of an `AFError` may contain the value of a header field,
    /// which may be a secret; its localized description does not.
    fileprivate var storedText: String { (self as? AFError)?.localizedDescription ?? "\(self)" }
}

extension AttemptFailure {
    /// Creates the failure of a request that the session ended without a failed transfer.
    private init(withoutTransfer error: (any Error)?) {
        let message = error?.storedText ?? "no response"
        switch error {
        // 42 is CURLE_ABORTED_BY_CALLBACK. The phase is `request`, because part of the request may have been sent.
        case let error as URLError where error.code == .cancelled:
            self.init(code: 42, phase: .request, message: message)
        case let error as AFError where error.isInvalidURLError || error.isURLRequestValidationError:
            self.init(code: 3, phase: .resolve, message: message)
        // 2 is CURLE_FAILED_INIT, which is retried: an unexpected error must not make a request dead.
        default: self.init(code: 2, phase: .resolve, message: message)
        }
    }
}

extension AttemptFailure.Phase {
    fileprivate init(_ phase: TransferFailure.Phase) {
        switch phase {
        case .prepare, .resolve: self = .resolve
        case .connect: self = .connect
        case .tls: self = .tls
        case .request: self = .request
        case .response: self = .response
        }
    }
}

/// The calls of the adapter and the interceptor of the queue's session.
///
/// Both are code of the program and may never return. An attempt therefore waits for them only for a limited time, and
/// then its request is postponed. ``KeyedCalls`` limits the calls that have not returned, with the host as the key: a
/// host for which the adapter hangs does not delay requests to other hosts.
struct AdapterCalls: Sendable {
    private let session: SessionManager
    /// The calls by host.
    let calls: KeyedCalls<String>

    /// - Parameters:
    ///   - session: The session whose adapter and interceptor are called.
    ///   - timeout: The maximum time for which an attempt waits for them.
    ///   - clock: The clock of the timeout.
    init<Time: Clock>(of session: SessionManager, timeout: Duration, clock: Time = ContinuousClock())
    where Time.Duration == Duration {
        self.session = session
        calls = KeyedCalls(timeout: timeout, clock: clock)
    }

    /// Returns the request that the session's adapter and interceptor create.
    ///
    /// - Throws: ``WithheldReason`` if the call is refused or does not return in time, `CancellationError`, or the
    ///   error of the adapter or the interceptor.
    func adapted(_ request: URLRequest) async throws -> URLRequest {
        guard session.adaptsRequests else { return request }
        let host = request.url?.host?.lowercased() ?? ""
        return try await calls.run(for: host, of: "the adapter of the queue's session", keys: "hosts") {
            [session] in
            // Each call has its own queue: Dispatch starts a thread for a serial queue even if the threads of other
            // queues are blocked.
            try await session.adapted(request, on: DispatchQueue(label: "netwatch.adapter"))
        }
    }
}
