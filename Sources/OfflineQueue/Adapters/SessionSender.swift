package import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop

/// Sends attempts through a session, one session request per attempt.
package struct SessionSender: AttemptSender {
    let session: SessionManager
    let bodyTimeout: Duration

    /// - Parameter bodyTimeout: The maximum time for the rest of a response once its status is known. Default 10 s.
    package init(session: SessionManager, bodyTimeout: Duration = Attempt.bodyTimeout) {
        self.session = session
        self.bodyTimeout = bodyTimeout
    }

    package func send(_ attempt: Attempt) async -> AttemptOutcome {
        guard let request = URLRequest(attempt) else {
            // CURLE_URL_MALFORMAT. The queue has checked the URL, so Foundation parses it differently.
            return .failure(AttemptFailure(code: 3, phase: .resolve, message: "malformed URL"))
        }
        let response = await session.transfer(
            request,
            body: attempt.body.kept,
            maximumResponseBytes: Attempt.maximumResponseBytes,
            connectTimeout: attempt.timeouts.connect,
            responseTimeout: attempt.timeouts.response,
            totalTimeout: attempt.longest,
            bodyTimeout: bodyTimeout,
            allowsConnectionReuse: attempt.mayBeSentTwice && !attempt.isMisdirected
        ).response()
        return AttemptOutcome(response, of: attempt)
    }

    package func dropConnections() async {
        session.dropConnections()
    }

    package func restartStalled(to host: String) {
        session.restartStalled(to: host)
    }

    package func validatesServer(of url: String) -> Bool {
        session.validatesServer(of: url)
    }
}

extension URLRequest {
    fileprivate init?(_ attempt: Attempt) {
        guard let url = URL(string: attempt.url) else { return nil }
        self.init(url: url)
        httpMethod = attempt.method
        if case .data(let data) = attempt.body { httpBody = data }
        for header in attempt.headers { addValue(header.value, forHTTPHeaderField: header.name) }
    }
}

extension Attempt.Body {
    /// A file is sent with its `Content-Length`. libcurl may have to send it again from the beginning: on a new
    /// connection, when a reused one turns out to be dead before a response arrives.
    fileprivate var kept: ReplayableBody? {
        guard case .file(let file) = self else { return nil }
        return ReplayableBody(length: file.body.size) { file.makeReader() }
    }
}

extension AttemptOutcome {
    fileprivate init(_ result: DefaultDataResponse, of attempt: Attempt) {
        let failure = result.error?.transferFailure
        // A body that was cut off, by our limit or by the connection, does not change the status of the response.
        guard let response = result.response, failure?.isAboutBodyOnly ?? (result.error == nil) else {
            var ended = AttemptFailure(result.error, failure, status: result.response?.statusCode)
            ended.overrun = failure.flatMap { attempt.overrun($0, status: ended.status) }
            self = .failure(ended)
            return
        }
        self = .response(
            status: response.statusCode,
            headers: response.allHeaderFields.compactMap { name, value in
                (name as? String).flatMap { name in (value as? String).map { (name, $0) } }
            },
            body: result.data ?? Data(),
            isTruncated: failure != nil
        )
    }
}

extension Attempt {
    /// Returns the timeout that ended the attempt after it was sent and before the server responded. In this phase,
    /// CURLE_OPERATION_TIMEDOUT of libcurl itself is the total timeout.
    fileprivate func overrun(_ failure: TransferFailure, status: Int?) -> Duration? {
        guard failure.code == 28, failure.phase == .response, status == nil else { return nil }
        return failure.isAnswerLate ? timeouts.response : longest
    }
}

extension TransferFailure {
    /// CURLE_FILESIZE_EXCEEDED and CURLE_OPERATION_TIMEDOUT, which are our limits, and CURLE_PARTIAL_FILE.
    fileprivate var isAboutBodyOnly: Bool { [63, 28, 18].contains(code) }

    /// Whether nothing was sent because of a shortage on this machine. A timeout in the prepare phase means that the
    /// transfer was still waiting for a resolver thread or for other transfers.
    fileprivate var isLocal: Bool {
        isLocalShortage || (phase == .prepare && code == 28) || (mayHideShortage && DescriptorSupply.isShort)
    }

    /// Whether the error may hide a shortage of descriptors. When libcurl, OpenSSL or the C library cannot open a file
    /// or a socket, they report a wrong configuration, an unknown issuer or an unknown name, without an error number.
    private var mayHideShortage: Bool { bytesSent == 0 && osErrno == 0 && code != 28 && code != 42 }
}

extension TransferFailure {
    /// Whether the server refused the client's certificate. In TLS 1.3 this looks like a lost connection
    /// (CURLE_SEND_ERROR, CURLE_RECV_ERROR). It is a configuration error, like a certificate that libcurl cannot use
    /// (CURLE_SSL_CERTPROBLEM, 58).
    ///
    /// An alert during the handshake (CURLE_SSL_CONNECT_ERROR) does not count: any device on the path may have sent it,
    /// so the request only waits for another path.
    fileprivate var isServersRefusal: Bool {
        clientCertificateRefusal != nil && (code == 55 || code == 56)
    }
}

extension AttemptFailure {
    /// - Parameter status: The status of a response that had begun.
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

extension AttemptFailure {
    /// Creates a failure for a request that the session itself ended.
    private init(withoutTransfer error: (any Error)?) {
        let message = error.map { "\($0)" } ?? "no response"
        switch error {
        // Nothing shows whether the request was cancelled before anything was sent.
        case let error as URLError where error.code == .cancelled:
            self.init(code: 42, phase: .request, message: message)
        case let error as AFError where error.isInvalidURLError || error.isURLRequestValidationError:
            self.init(code: 3, phase: .resolve, message: message)
        // CURLE_FAILED_INIT, because an unexpected error must not make a request dead.
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
