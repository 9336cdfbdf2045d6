internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Code of the program that blocks delays only its own request.
@Suite(.timeLimit(.minutes(5))) struct BlockingCodeTests {
    private let session: SessionManager
    private let server: ScriptedServer
    private let gate = Gate()

    init() throws {
        session = SessionManager(engine: try TransferEngine())
        server = try ScriptedServer { .respond($0.target) }
    }

    /// Blocks the threads that pass through it until it is opened.
    private final class Gate: Sendable {
        let waiting = Recorder<Int>()
        private let isOpen = DispatchSemaphore(value: 0)

        func pass() {
            waiting.record(1)
            isOpen.wait()
            isOpen.signal()
        }

        func open() { isOpen.signal() }
    }

    private struct BlockingAdapter: RequestAdapter {
        let gate: Gate

        func adapt(_ urlRequest: URLRequest) -> URLRequest {
            if urlRequest.url?.path.hasPrefix("/blocked") == true { gate.pass() }
            return urlRequest
        }
    }

    /// An interceptor that ignores the cancellation of its task.
    private struct WaitingInterceptor: RequestInterceptor {
        let gate: Gate

        func adapt(_ urlRequest: URLRequest, for session: SessionManager) async -> URLRequest {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                Thread.detachNewThread {
                    gate.pass()
                    continuation.resume()
                }
            }
            return urlRequest
        }

        func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async
            -> RetryResult
        { .doNotRetry }
    }

    /// Sends requests of the same session and of another one, and expects their responses.
    private func expectOthersComplete() async throws {
        let other = SessionManager(engine: try TransferEngine())
        for session in [session, other] {
            #expect(await session.request("\(server.url)/other").responseData().value == Data("/other".utf8))
        }
    }

    /// The adapter of a first attempt runs on the thread that creates the request. Each request is therefore created on
    /// a thread of its own.
    @Test func `an adapter that does not return delays only its own requests`() async throws {
        session.adapter = BlockingAdapter(gate: gate)
        let requests = (0..<4).map { number in
            Task { [session, server] in
                try await offPool { session.request("\(server.url)/blocked/\(number)") }
            }
        }
        try await gate.waiting.wait { $0.count == 4 }
        try await expectOthersComplete()
        #expect(server.requests.map(\.target) == ["/other", "/other"])
        gate.open()
        for (index, request) in requests.enumerated() {
            let response = try await request.value.responseData()
            #expect(response.value == Data("/blocked/\(index)".utf8))
        }
    }

    @Test func `a handler that blocks delays only its own request`() async throws {
        let queue = DispatchQueue(label: "blocked")
        let request = session.request("\(server.url)/blocked")
            .response(queue: queue) { [gate] _ in gate.pass() }
        try await gate.waiting.wait { $0.count == 1 }
        try await expectOthersComplete()
        gate.open()
        #expect(await request.responseData().value == Data("/blocked".utf8))
    }

    @Test func `a request whose interceptor does not return can be cancelled`() async throws {
        session.interceptor = WaitingInterceptor(gate: gate)
        let request = session.request("\(server.url)/blocked")
        try await gate.waiting.wait { $0.count == 1 }
        request.cancel()
        let response = await request.response()
        gate.open()
        #expect((response.error as? URLError)?.code == .cancelled)
        #expect(server.requests.isEmpty)
    }
}
