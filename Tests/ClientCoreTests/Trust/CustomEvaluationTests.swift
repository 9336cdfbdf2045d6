internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Custom evaluations that block, and what a request shows of them.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(2)))
struct CustomEvaluationTests {
    private let server: TLSServer
    /// The hosts about which the evaluation was asked.
    private let asked = Recorder<String>()
    private let gate = Gate()

    init() async throws {
        server = try await TLSServer.shared()
    }

    /// Returns a policy that accepts every server when the gate is opened.
    private func blocking() -> ServerTrustPolicy {
        .customEvaluation { [asked, gate] _, host in
            asked.record(host)
            gate.wait()
            return true
        }
    }

    private func url(_ host: String) -> String { "\(server.url(host))/" }

    @Test func `an evaluation that does not return delays neither other hosts nor other sessions`()
        async throws
    {
        let session = server.session([
            "valid.test": blocking(), "self.test": .customEvaluation { _, _ in true },
        ])
        let blocked = session.request(url("valid.test"))
        try await asked.wait { $0 == ["valid.test"] }
        #expect(await session.request(url("self.test")).response().error == nil)
        let other = server.session(["valid.test": .customEvaluation { _, _ in true }])
        #expect(await other.request(url("valid.test")).response().error == nil)
        #expect(blocked.response == nil)
        gate.open()
        #expect(await blocked.response().error == nil)
    }

    @Test func `an evaluation that does not return ends its request with a timeout`() async throws {
        let session = server.session(["valid.test": blocking()])
        var request = URLRequest(url: URL(string: url("valid.test"))!)
        request.timeoutInterval = 1
        let error = await session.request(request).response().error
        #expect((error as? URLError)?.code == .timedOut)
        #expect(error?.localizedDescription.contains("has not evaluated the server's certificates") == true)
        #expect(error?.transferFailure?.phase == .tls)
        #expect(error?.transferFailure?.bytesSent == 0)
        gate.open()
        #expect(await session.request(url("valid.test")).response().error == nil)
        #expect(asked.values.count == 1)
    }

    @Test func `a request can be cancelled during its evaluation`() async throws {
        let ends = Recorder<(any Error)?>()
        let session = server.session(["valid.test": blocking()])
        let request = session.request(url("valid.test")).response(queue: .global()) { ends.record($0.error) }
        try await asked.wait { !$0.isEmpty }
        request.cancel()
        try await ends.wait { !$0.isEmpty }
        gate.open()
        // This request waits for the same evaluation, so the cancelled one has nothing left to wait for.
        #expect(await session.request(url("valid.test")).response().error == nil)
        #expect(ends.values.count == 1)
        #expect((ends.values[0] as? URLError)?.code == .cancelled)
    }

    @Test func `the second connection is one attempt of the request`() async throws {
        let calls = Recorder<String>()
        let session = server.session(["valid.test": .customEvaluation { _, _ in true }])
        session.adapter = Adapter(calls: calls)
        session.retrier = Retrier(calls: calls)
        let request = session.upload(Data("body".utf8), to: url("valid.test"))
            .validate { _, _, _ in
                calls.record("validate")
                return .success
            }
            .response(queue: .global()) { _ in calls.record("handler") }
        let response = await request.response()
        #expect(response.error == nil)
        #expect(request.retryCount == 0)
        #expect(request.uploadProgress.completedUnitCount == 4)
        #expect(response.metrics?.transactionMetrics.count == 1)
        try await calls.wait { $0.contains("handler") }
        #expect(calls.values == ["adapt", "validate", "handler"])
    }
}

private struct Adapter: RequestAdapter {
    let calls: Recorder<String>

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        calls.record("adapt")
        return urlRequest
    }
}

private struct Retrier: RequestRetrier {
    let calls: Recorder<String>

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        calls.record("retry")
        completion(false, 0)
    }
}
