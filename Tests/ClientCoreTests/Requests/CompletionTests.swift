internal import Dispatch
internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Every handler is called exactly once and on its queue, whatever happens.
@Suite(.timeLimit(.minutes(5))) struct CompletionTests {
    private let engine: TransferEngine
    private let session: SessionManager

    init() throws {
        engine = try TransferEngine()
        session = SessionManager(engine: engine)
    }

    @Test func `handlers run in order, including one added after the end`() async throws {
        let server = try ScriptedServer()
        let queue = DispatchQueue(label: "test")
        let order = Recorder<Int>()
        let request = session.request(server.url)
            .response(queue: queue) { _ in order.record(1) }
            .responseData(queue: queue) { _ in order.record(2) }
            .response(queue: queue) { _ in order.record(3) }
        _ = await request.response()
        await withCheckedContinuation { done in
            request.responseData(queue: queue) { _ in
                order.record(4)
                done.resume()
            }
        }
        #expect(order.values == [1, 2, 3, 4])
    }

    @Test func `a handler without a queue runs on the main queue`() async throws {
        let server = try ScriptedServer()
        await withCheckedContinuation { done in
            session.request(server.url).response { _ in
                dispatchPrecondition(condition: .onQueue(.main))
                done.resume()
            }
        }
    }

    @Test func `cancelling a request calls its handlers once with URLError.cancelled`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let errors = Recorder<any Error>()
        let request = session.request(server.url).responseData(queue: .global()) { response in
            if let error = response.error { errors.record(error) }
        }
        await server.requests(atLeast: 1)
        request.cancel()
        request.cancel()
        let response = await request.response()
        #expect((response.error as? URLError)?.code == .cancelled)
        #expect(response.error?.transferFailure?.phase == .response)
        #expect(response.error?.transferFailure.map { $0.bytesSent > 0 } == true)
    }

    @Test func `cancelling a finished request has no effect`() async throws {
        let server = try ScriptedServer()
        let request = session.request(server.url)
        _ = await request.response()
        request.cancel()
        #expect(await request.response().error == nil)
    }

    @Test func `cancelling the awaiting task cancels the request`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let request = session.request(server.url)
        let waiting = Task { await request.responseData() }
        await server.requests(atLeast: 1)
        waiting.cancel()
        #expect((await waiting.value.error as? URLError)?.code == .cancelled)
    }

    @Test func `a task cancelled before it awaits cancels the request`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let request = session.request(server.url)
        let waiting = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await request.response()
        }
        #expect((await waiting.value.error as? URLError)?.code == .cancelled)
    }

    @Test func `releasing a session fails its requests with sessionDeinitialized`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        var session: SessionManager? = SessionManager(engine: engine)
        let requests = try (0..<10).map { _ in try #require(session).request(server.url) }
        await server.requests(atLeast: 10)
        session = nil
        for request in requests {
            let response = await request.response()
            #expect((response.error as? AFError)?.isSessionDeinitializedError == true)
        }
    }

    @Test func `a finished request is released and releases its closures`() async throws {
        let server = try ScriptedServer()
        weak var request: DataRequest?
        let released = Recorder<Bool>()
        do {
            let captured = Captured { released.record(true) }
            let made = session.request(server.url).response(queue: .global()) { _ in
                withExtendedLifetime(captured) {}
            }
            request = made
            _ = await made.response()
        }
        try await released.wait { !$0.isEmpty }
        // The threads that ended the request may retain it a moment longer.
        await waitUntilReleased { request }
    }

    /// A decision that the program makes later.
    enum Decision: CaseIterable { case redirection, response, retry }

    @Test(arguments: Decision.allCases)
    func `a completion that the program keeps does not retain a cancelled request`(
        decision: Decision
    ) async throws {
        let server = try ScriptedServer { _ in
            let isRedirect = decision == .redirection
            let headers = isRedirect ? [ScriptedServer.Header("Location", "/next")] : []
            return .respond(status: isRedirect ? 302 : 500, headers: headers, body: [])
        }
        let kept = Recorder<@Sendable () -> Void>()
        switch decision {
        case .redirection:
            session.delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, _, completion in
                kept.record { completion(nil) }
            }
        case .response:
            session.delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, completion in
                kept.record { completion(.allow) }
            }
        case .retry: session.retrier = KeepingRetrier(kept: kept)
        }
        weak var core: RequestCore?
        do {
            let request = session.request(server.url).validate()
            core = request.core
            try await kept.wait { !$0.isEmpty }
            request.cancel()
            #expect((await request.response().error as? URLError)?.code == .cancelled)
        }
        await waitUntilReleased { core }
        for call in kept.values { call() }
    }

    @Test func `a handler may hold the last reference to its session`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let done = Recorder<Int>()
        do {
            let session = SessionManager(engine: engine)
            session.request(server.url).response(queue: .global()) { _ in
                withExtendedLifetime(session) { done.record(1) }
            }
        }
        await server.requests(atLeast: 1)
        server.release()
        try await done.wait { $0.count >= 1 }
        #expect(done.values == [1])
    }

    @Test func `five hundred requests complete once each`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        let completions = Recorder<String>()
        await withTaskGroup { group in
            for index in 0..<500 {
                let request = session.request("\(server.url)/\(index)").responseData(queue: .global()) {
                    completions.record(String(decoding: $0.value ?? Data(), as: UTF8.self))
                }
                group.addTask { _ = await request.response() }
            }
        }
        try await completions.wait { $0.count >= 500 }
        #expect(Set(completions.values) == Set((0..<500).map { "/\($0)" }))
        #expect(completions.values.count == 500)
    }

    @Test func `requests cancelled concurrently at any moment complete once each`() async throws {
        let server = try ScriptedServer()
        let completions = Recorder<Int>()
        for index in 0..<300 {
            let request = session.request(server.url).response(queue: .global()) { _ in
                completions.record(index)
            }
            for _ in 0..<2 { DispatchQueue.global().async { request.cancel() } }
            request.response(queue: .global()) { _ in completions.record(index + 1000) }
        }
        try await completions.wait { $0.count >= 600 }
        #expect(completions.values.sorted() == Array(0..<300) + Array(1000..<1300))
    }

    @Test func `closures that capture their request are released when it has finished`() async throws {
        let server = try ScriptedServer { _ in .respond("body") }
        weak var request: UploadRequest?
        do {
            let made = session.upload(Data("x".utf8), to: server.url)
            request = made
            made.validate { _, _, _ in withExtendedLifetime(made) { .success } }
            made.uploadProgress(queue: .global()) { _ in withExtendedLifetime(made) {} }
            made.downloadProgress(queue: .global()) { _ in withExtendedLifetime(made) {} }
            made.stream { _ in withExtendedLifetime(made) {} }
            _ = await made.response()
            made.validate { _, _, _ in withExtendedLifetime(made) { .success } }
            made.downloadProgress(queue: .global()) { _ in withExtendedLifetime(made) {} }
            made.stream { _ in withExtendedLifetime(made) {} }
        }
        await waitUntilReleased { request }
    }
}

/// A retrier that keeps the completion and does not call it.
private struct KeepingRetrier: RequestRetrier {
    let kept: Recorder<@Sendable () -> Void>

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        kept.record { completion(false, 0) }
    }
}
