internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchService
internal import NetwatchTransport
internal import OfflineQueue

/// A request sent without the service. It is not stored or retried, and no redirect is followed.
struct DirectRequest {
    /// The request. Its body is that of ``input``.
    let request: QueueRequest
    let input: BodyInput?
    /// Only the expectation, the timeouts and the version of HTTP apply.
    let options: EnqueueOptions

    /// - Parameter head: The request without its body.
    init(_ head: QueueRequest, body: BodyInput?, options: EnqueueOptions) {
        var request = head
        if let body { request.body = body.requestBody }
        self.request = request
        input = body
        self.options = options
    }

    /// Sends the request.
    ///
    /// - Returns: `delivered` if the response is the expected one, otherwise `dead`, both with the status of the
    ///   response.
    /// - Throws: An error if no complete response arrived.
    func send() async throws(CommandError) -> ControlMessage.Sent {
        var request = try urlRequest()
        let file = try attachBody(to: &request)
        let session = SessionManager.bare()
        // Releasing the session would cancel its requests.
        defer { withExtendedLifetime(session) {} }
        let transfer = await session.transfer(request, body: file, policy: policy).response()
        guard let response = transfer.response, transfer.error.map(Self.isSizeLimit) ?? true else {
            throw CommandError(
                .unknown,
                "could not send to `\(RedactedURL.text(of: self.request.url))`: \(Self.summary(transfer.error))",
                hint: hint(transfer.error)
            )
        }
        return result(from: response, transfer.data ?? Data())
    }

    private var policy: TransferPolicy {
        var policy = TransferPolicy.singleTransfer(
            maximumResponseBytes: max(Attempt.maximumResponseBytes, options.expectation.bodyBytes),
            // The body's length may be unknown, so the timeout assumes the maximum.
            totalTimeout: options.timeouts.longest(sending: QueueRequest.maximumBodyBytes),
            allowsConnectionReuse: false
        )
        policy.connectTimeout = options.timeouts.connect
        policy.responseTimeout = options.timeouts.response
        policy.httpVersion = options.httpVersion
        return policy
    }

    /// Checks the request by the rules of the queue, but allows secrets.
    ///
    /// - Returns: The request without its body.
    private func urlRequest() throws(CommandError) -> URLRequest {
        do throws(QueueError) {
            try RequestChecks.check(request, for: .send)
            try RequestChecks.check(options.httpVersion, of: request.url)
            return try URLRequest(
                method: request.method,
                url: request.url,
                headers: request.headers,
                body: nil
            )
        } catch {
            throw CommandError(.usage, error.message)
        }
    }

    private func attachBody(to request: inout URLRequest) throws(CommandError) -> ReplayableBody? {
        switch input {
        case nil: return nil
        case .bytes(let bytes): request.httpBody = Data(bytes)
        case .standardInput:
            try StandardInput.requireReadable()
            request.httpBodyStream = InputStream(fileAtPath: "/dev/stdin")
        case .file(let path):
            // Opening the file here first gives a more precise error than `ReplayableBody`.
            let reader = try BodyReader.opening(path)
            defer { withExtendedLifetime(reader) {} }
            do {
                return try ReplayableBody(file: reader.path)
            } catch {
                throw CommandError(.usage, "could not read `\(path)`: \(error)")
            }
        }
        return nil
    }

    /// Returns whether the transfer only failed because the response was longer than what is kept
    /// (CURLE_FILESIZE_EXCEEDED). Such a response counts as complete.
    private static func isSizeLimit(_ error: any Error) -> Bool {
        error.transferFailure?.code == 63
    }

    /// Returns the option that avoids an error.
    private func hint(_ error: (any Error)?) -> String? {
        guard let failure = error?.transferFailure else { return nil }
        switch failure.code {
        // CURLE_HTTP2, CURLE_HTTP2_STREAM. The process ends now, so no later request of it can use HTTP/1.1.
        case 16, 92: return "`--http-version 1.1` avoids HTTP/2"
        // CURLE_OPERATION_TIMEDOUT
        case 28:
            let (option, limit) = timeout(after: failure)
            return "`\(option)` is \(DurationText.exact(limit)); accepted: up to 24h"
        default: return nil
        }
    }

    /// Returns the timeout that ended the transfer, and its option.
    private func timeout(after failure: TransferFailure) -> (option: String, limit: Duration) {
        let timeouts = options.timeouts
        let total = timeouts.longest(sending: QueueRequest.maximumBodyBytes)
        if failure.isResponseLate { return ("--response-timeout", timeouts.response) }
        let isConnecting = [.resolve, .connect, .tls].contains(failure.phase)
        return isConnecting && timeouts.connect < total
            ? ("--connect-timeout", timeouts.connect) : ("--max-time", total)
    }

    private static func summary(_ error: (any Error)?) -> String {
        error?.transferFailure?.message ?? error.map { "\($0)" } ?? "no response"
    }

    private func result(from response: HTTPURLResponse, _ body: Data) -> ControlMessage.Sent {
        let mismatch = options.expectation.mismatch(with: ReceivedResponse(response, body))
        return ControlMessage.Sent(
            id: nil,
            state: mismatch == nil ? "delivered" : "dead",
            status: response.statusCode,
            reason: mismatch.map { "HTTP \(response.statusCode), \($0)" },
            bodyBase64: body.isEmpty ? nil : body.base64EncodedString()
        )
    }
}

extension BodyInput {
    /// The body as a `QueueRequest.Body`, for the checks of the queue. Files are not read.
    fileprivate var requestBody: QueueRequest.Body {
        switch self {
        case .bytes(let bytes): .data(Data(bytes))
        case .file(let path): .file(path: "\(path)")
        case .standardInput: .file(path: "/dev/stdin")
        }
    }
}
