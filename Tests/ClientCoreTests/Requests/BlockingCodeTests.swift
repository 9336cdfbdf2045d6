internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Code of the program that blocks delays only its own request. `ProcessTests` has the tests with many blocked calls.
///
/// The tests run one after the other, because Dispatch starts additional threads only slowly while others are blocked.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BlockingCodeTests {
    private let engine: TransferEngine
    private let session: SessionManager
    private let server: ScriptedServer
    private let scratch: ScratchDirectory
    private let gate = Gate()

    init() throws {
        engine = try TransferEngine()
        session = SessionManager(engine: engine)
        server = try ScriptedServer { BlockingProgram.answer($0) }
        scratch = try ScratchDirectory()
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

    /// Sends requests of the same session and of another one on the same engine, and expects their responses.
    private func expectOthersComplete() async throws {
        let other = SessionManager(engine: engine)
        let bodies = Recorder<Data>()
        for session in [session, other] {
            session.request("\(server.url)/other")
                .response(queue: .global()) { bodies.record($0.data ?? Data()) }
                .resume()
        }
        try await bodies.wait { $0.count == 2 }
        #expect(bodies.values == Array(repeating: Data("/other".utf8), count: 2))
        withExtendedLifetime(other) {}
    }

    @Test(arguments: BlockingProgram.Callback.allCases)
    func `a callback that blocks delays only its own request`(callback: BlockingProgram.Callback) async throws
    {
        let program = BlockingProgram(callback, downloadingTo: URL(fileURLWithPath: scratch.file("body")))
        defer { program.release() }
        program.start(in: session, server)
        try await program.blocked.wait { !$0.isEmpty }
        try await expectOthersComplete()
        #expect(program.ended.values.isEmpty)
        program.release()
        try await program.ended.wait { !$0.isEmpty }
        #expect(program.ended.values.count == 1)
        let error = program.ended.values[0]
        let expected: URLError.Code? = callback == .didCancel ? .cancelled : nil
        #expect((error as? URLError)?.code == expected, "\(String(describing: error))")
        if expected == nil { #expect(error == nil) }
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
        defer { gate.open() }
        try await gate.waiting.wait { $0.count == 4 }
        try await expectOthersComplete()
        #expect(server.requests.map(\.target) == ["/other", "/other"])
        gate.open()
        for (index, request) in requests.enumerated() {
            let response = try await request.value.responseData()
            #expect(response.value == Data("/blocked/\(index)".utf8))
        }
    }

    @Test func `a handler that blocks does not delay the handlers of other queues`() async throws {
        let second = Recorder<Data?>()
        defer { gate.open() }
        let request = session.request("\(server.url)/blocked")
            .response(queue: DispatchQueue(label: "blocked")) { [gate] _ in gate.pass() }
            .response(queue: DispatchQueue(label: "second")) { second.record($0.data) }
        try await gate.waiting.wait { $0.count == 1 }
        try await second.wait { $0 == [Data("/blocked".utf8)] }
        #expect(await request.responseData().value == Data("/blocked".utf8))
    }

    @Test func `a request whose interceptor does not return can be cancelled`() async throws {
        session.interceptor = WaitingInterceptor(gate: gate)
        defer { gate.open() }
        let request = session.request("\(server.url)/blocked")
        try await gate.waiting.wait { $0.count == 1 }
        request.cancel()
        let response = await request.response()
        #expect((response.error as? URLError)?.code == .cancelled)
        #expect(server.requests.isEmpty)
    }
}
