internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Failed requests that are offered to an owner, which may finish them.
@Suite(.timeLimit(.minutes(5))) struct FailedRequestTests {
    private struct Refused: Error {}

    private let session: SessionManager
    private let server: ScriptedServer

    init() throws {
        session = SessionManager(engine: try TransferEngine())
        server = try ScriptedServer { _ in .respond(status: 503) }
    }

    private func answer(_ body: String = "answer", status: Int = 200) throws -> OwnerResponse {
        OwnerResponse(
            url: try #require(URL(string: server.url)),
            head: TransferHead(status: status, version: "HTTP/1.1", headers: [.init("X-Owner", "yes")]),
            body: Data(body.utf8)
        )
    }

    @Test func `an owner receives the failed request's details and finishes it with a response`()
        async throws
    {
        let holding = HoldingOwner()
        session.failedRequestOwner = holding
        session.retrier = Once()
        let request = session.upload(Data("body".utf8), to: server.url).validate()
        async let response = request.responseString()
        let failed = try await holding.first()
        #expect(failed.original.url?.absoluteString == server.url)
        #expect(failed.adapted.httpMethod == "POST")
        #expect((failed.error as? AFError)?.responseCode == 503)
        #expect(failed.response?.statusCode == 503)
        #expect(failed.retryCount == 1)
        #expect(failed.upload?.byteCount == 4)
        failed.finish(with: try answer())
        failed.fail(with: Refused())
        #expect(await response.value == "answer")
        #expect(await response.response?.value(forHTTPHeaderField: "X-Owner") == "yes")
        #expect(await request.responseString().value == "answer", "a late handler gets the response, too")
        #expect(request.response?.statusCode == 200)
        #expect(server.requests.count == 2)
    }

    @Test func `validators check the owner's response, and later additions do not change it`() async throws {
        let answer = try answer(status: 418)
        let owner = RecordingOwner { $0.finish(with: answer) }
        let request = session.request(server.url).validate().offerFailure(to: owner)
        #expect((await request.response().error as? AFError)?.responseCode == 418)
        request.validate(statusCode: [1]).authenticate(user: "user", password: "password")
        #expect((await request.response().error as? AFError)?.responseCode == 418)
        #expect(server.requests.count == 1)
    }

    @Test func `an owner can finish a request with a response and an error`() async throws {
        let answer = try answer(status: 418)
        let owner = RecordingOwner { $0.finish(with: answer, error: Refused()) }
        let response = await session.request(server.url).validate().offerFailure(to: owner).responseString()
        #expect(response.error is Refused)
        #expect(response.response?.statusCode == 418)
        #expect(response.data == Data("answer".utf8))
    }

    @Test func `a stored request is queued until its owner finishes it`() async throws {
        let holding = HoldingOwner()
        session.failedRequestOwner = holding
        session.startRequestsImmediately = false
        let receipts = Recorder<String>()
        let request = session.request(server.url).validate().whenQueued { receipts.record("\($0)") }
        #expect(request.state == .initialized)
        request.resume()
        let failed = try await holding.first()
        #expect(request.state == .resumed)
        #expect(failed.reportQueued("receipt", abandonedWith: Refused()))
        #expect(!failed.reportQueued("another", abandonedWith: Refused()))
        try await receipts.wait { !$0.isEmpty }
        #expect(request.state == .queued)
        failed.finish(with: try answer())
        #expect(await request.responseString().value == "answer")
        #expect(request.state == .finished)
        #expect(receipts.values == ["receipt"])
    }

    @Test func `a request cannot be queued after it was cancelled`() async throws {
        let holding = HoldingOwner()
        session.failedRequestOwner = holding
        let request = session.request(server.url).validate()
        let failed = try await holding.first()
        #expect((await request.cancel().response().error as? URLError)?.code == .cancelled)
        #expect(request.state == .cancelled)
        #expect(!failed.reportQueued("receipt", abandonedWith: Refused()))
    }

    @Test func `releasing the session ends a stored request with its owner's error`() async throws {
        let holding = HoldingOwner()
        var session: SessionManager? = SessionManager(engine: try TransferEngine())
        session?.failedRequestOwner = holding
        let request = try #require(session).request(server.url).validate()
        async let response = request.response()
        let failed = try await holding.first()
        #expect(failed.reportQueued("receipt", abandonedWith: Refused()))
        session = nil
        #expect(await response.error is Refused)
    }

    @Test func `an owner can take requests before they are sent`() async throws {
        struct First: FailedRequestOwner {
            let answer: OwnerResponse
            var takesUnsentRequests: Bool { true }
            func addedFields(for request: URLRequest) -> HTTPHeaders { ["X-Prepared": "yes"] }
            func offer(_ request: FailedRequest) {
                if request.error is UnsentRequest,
                    request.original.value(forHTTPHeaderField: "X-Prepared") == "yes"
                {
                    request.finish(with: answer)
                }
            }
        }
        session.failedRequestOwner = First(answer: try answer())
        session.retrier = Once()
        #expect(await session.request(server.url).responseString().value == "answer")
        #expect(server.requests.isEmpty)
    }

    @Test func `the adapter sees the fields of the request's own owner in each attempt`() async throws {
        // Otherwise the request may have started before its owner is set.
        session.startRequestsImmediately = false
        session.adapter = Signing()
        session.retrier = Once()
        let request = session.request(server.url).validate().offerFailure(
            to: PreparingOwner(fields: ["X-Key": "1"])
        )
        #expect((await request.response().error as? AFError)?.responseCode == 503)
        #expect(server.requests.map { $0.values(of: "X-Key") } == [["1"], ["1"]])
        #expect(server.requests.map { $0.values(of: "X-Signed") } == [["X-Key"], ["X-Key"]])
    }

    @Test func `an owner that is replaced before the start adds no header fields`() async throws {
        session.startRequestsImmediately = false
        let request = session.request(server.url)
            .offerFailure(to: PreparingOwner(fields: ["X-Key": "1", "X-First": "1"]))
            .offerFailure(to: PreparingOwner(fields: ["X-Key": "2"]))
        #expect(await request.response().error == nil)
        let sent = try #require(server.requests.first)
        #expect(sent.values(of: "X-Key") == ["2"])
        #expect(sent.values(of: "X-First").isEmpty)
    }

    @Test func `an owner can finish a request with an error`() async throws {
        let owner = RecordingOwner { $0.fail(with: Refused()) }
        session.failedRequestOwner = owner
        let response = await session.request(server.url).validate().response()
        #expect(response.error is Refused)
        #expect(response.response?.statusCode == 503)
    }

    @Test func `a request that its owner declines fails with its original error, immediately or later`()
        async throws
    {
        let owner = RecordingOwner { _ in }
        session.failedRequestOwner = owner
        let response = await session.request(server.url).validate().response()
        #expect((response.error as? AFError)?.responseCode == 503)
        #expect(owner.offers.values == [0])

        session.failedRequestOwner = nil
        let declining = DecliningOwner()
        async let later = session.request(server.url).validate().offerFailure(to: declining).response()
        try await declining.offered.wait { !$0.isEmpty }
        declining.decline()
        #expect((await later.error as? AFError)?.responseCode == 503)
    }

    @Test func `the request's own owner is called before the session's, each once`() async throws {
        // Otherwise the request may have failed before its owner is set.
        session.startRequestsImmediately = false
        let asked = Recorder<String>()
        session.failedRequestOwner = RecordingOwner { _ in asked.record("session's") }
        let request = session.request(server.url).validate().offerFailure(
            to: RecordingOwner { _ in asked.record("own") }
        )
        #expect((await request.response().error as? AFError)?.responseCode == 503)
        #expect(asked.values == ["own", "session's"])
        #expect(server.requests.count == 1)
    }

    @Test func `a failure that the request's own owner retains is not offered to the session's owner`()
        async throws
    {
        // Otherwise the request may have failed before its owner is set.
        session.startRequestsImmediately = false
        let (owner, answer) = (RecordingOwner { _ in }, try answer())
        session.failedRequestOwner = owner
        let request = session.request(server.url).validate()
            .offerFailure(to: RecordingOwner { $0.finish(with: answer) })
        #expect(await request.responseString().value == "answer")
        #expect(owner.offers.values.isEmpty)
    }

    @Test func `an owner set while the session's owner holds the request is called after a decline`()
        async throws
    {
        let declining = DecliningOwner()
        session.failedRequestOwner = declining
        let request = session.request(server.url).validate()
        async let response = request.responseString()
        try await declining.offered.wait { !$0.isEmpty }
        let answer = try answer()
        let own = RecordingOwner { $0.finish(with: answer) }
        request.offerFailure(to: own)
        // Wait for a turn of the request's queue: after that the owner is set.
        await withCheckedContinuation { done in request.core.perform { _ in done.resume() } }
        #expect(own.offers.values.isEmpty)
        declining.decline()
        #expect(await response.value == "answer")
        #expect(declining.offered.values == [1])
    }

    @Test
    func `a second owner of a request replaces the first one, unless that one already holds the request`()
        async throws
    {
        // Otherwise the request may have failed before its owner is set.
        session.startRequestsImmediately = false
        let (declining, asked) = (DecliningOwner(), Recorder<String>())
        session.failedRequestOwner = RecordingOwner { _ in asked.record("session's") }
        let request = session.request(server.url).validate()
            .offerFailure(to: RecordingOwner { _ in asked.record("replaced") })
            .offerFailure(to: declining)
        async let response = request.response()
        try await declining.offered.wait { !$0.isEmpty }
        request.offerFailure(to: RecordingOwner { _ in asked.record("last") })
        await withCheckedContinuation { done in request.core.perform { _ in done.resume() } }
        declining.decline()
        #expect((await response.error as? AFError)?.responseCode == 503)
        #expect(asked.values == ["last", "session's"])
    }

    @Test func `each attempt's failure is offered again`() async throws {
        // Otherwise the request may have failed before its owner is set.
        session.startRequestsImmediately = false
        let asked = Recorder<String>()
        let ended = Recorder<Int>()
        session.eventMonitors = [Ends(ended: ended)]
        session.failedRequestOwner = RecordingOwner { _ in asked.record("session's") }
        let challenging = try ScriptedServer { _ in
            .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"r\"")])
        }
        let request = session.request(challenging.url).validate().offerFailure(
            to: RecordingOwner { _ in asked.record("own") }
        )
        request.resume()
        try await ended.wait { !$0.isEmpty }
        // Credentials that are added after the failure send the request again, as long as no handler has been called.
        request.authenticate(user: "user", password: "password")
        #expect((await request.response().error as? AFError)?.responseCode == 401)
        #expect(asked.values == ["own", "session's", "own", "session's"])
    }

    @Test func `cancelling a request withdraws it from its owner before the handlers are called`()
        async throws
    {
        let holding = HoldingOwner()
        session.failedRequestOwner = holding
        let order = Recorder<String>()
        let request = session.request(server.url).validate()
        request.whenFinished { _ in order.record("handler") }
        let failed = try await holding.first()
        failed.whenWithdrawn { order.record("\($0)") }
        request.suspend().resume().suspend()
        request.cancel()
        #expect((await request.response().error as? URLError)?.code == .cancelled)
        failed.finish(with: try answer())
        #expect((await request.response().error as? URLError)?.code == .cancelled)
        #expect(order.values == ["cancelled", "handler"])
        failed.whenWithdrawn { order.record("late \($0)") }
        #expect(order.values == ["cancelled", "handler", "late cancelled"])
    }

    @Test func `releasing the session withdraws its offered requests`() async throws {
        let holding = HoldingOwner()
        var session: SessionManager? = SessionManager(engine: try TransferEngine())
        session?.failedRequestOwner = holding
        let request = try #require(session).request(server.url).validate()
        async let response = request.response()
        let failed = try await holding.first()
        let withdrawals = Recorder<String>()
        failed.whenWithdrawn { withdrawals.record("\($0)") }
        session = nil
        #expect((await response.error as? AFError)?.isSessionDeinitializedError == true)
        #expect(withdrawals.values == ["sessionDropped"])
    }

    @Test func `an owner can finish a suspended request`() async throws {
        let holding = HoldingOwner()
        session.failedRequestOwner = holding
        let request = session.request(server.url).validate()
        async let response = request.responseString()
        let failed = try await holding.first()
        request.suspend()
        failed.finish(with: try answer())
        #expect(await response.value == "answer")
    }

    @Test func `an owner set after the failure is called before any handler`() async throws {
        let ended = Recorder<Int>()
        session.eventMonitors = [Ends(ended: ended)]
        let request = session.request(server.url).validate()
        try await ended.wait { !$0.isEmpty }
        let answer = try answer()
        request.offerFailure(to: RecordingOwner { $0.finish(with: answer) })
        #expect(await request.responseString().value == "answer")
    }

    @Test func `the owner's response to a download is written to its file`() async throws {
        let scratch = try ScratchDirectory()
        let place = URL(fileURLWithPath: scratch.file("answer"))
        session.failedRequestOwner = RecordingOwner { [answer = try answer()] in $0.finish(with: answer) }
        let download = session.download(server.url) { _, _ in (place, []) }.validate()
        let response = await download.responseString()
        #expect(response.value == "answer")
        #expect(try Data(contentsOf: place) == Data("answer".utf8))
    }

    @Test func `cancelled requests, invalid requests and single transfers are not offered`()
        async throws
    {
        let owner = RecordingOwner { _ in }
        session.failedRequestOwner = owner
        session.delegate.dataTaskDidReceiveResponse = { _, _, _ in .cancel }
        #expect((await session.request(server.url).response().error as? URLError)?.code == .cancelled)
        session.delegate.dataTaskDidReceiveResponse = nil
        #expect(await session.request("").response().error != nil)
        let url = try URLRequest(url: "http://127.0.0.1:1/", method: .get)
        let transfer = session.transfer(
            url,
            policy: .singleTransfer(
                maximumResponseBytes: 1,
                totalTimeout: .seconds(9),
                allowsConnectionReuse: false
            )
        )
        #expect(await transfer.response().error != nil)
        #expect(owner.offers.values.isEmpty)
    }

    @Test func `a finished request releases what its owner has attached to it`() async throws {
        let released = Recorder<Bool>()
        let holding = HoldingOwner()
        do {
            let captured = Captured { released.record(true) }
            session.failedRequestOwner = holding
            let request = session.request(server.url).validate()
            let failed = try await holding.first()
            failed.whenWithdrawn { _ in withExtendedLifetime(captured) {} }
            failed.finish(with: try answer())
            _ = await request.response()
        }
        // The turn of the queue that called the handler may retain the closure until its end.
        try await released.wait { !$0.isEmpty }
    }
}

/// Retries every request once.
private struct Once: RequestRetrier {
    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    ) {
        completion(request.retryCount == 0, 0)
    }
}

/// Adds a field with the names of all other fields, like a signature that covers them.
private struct Signing: RequestAdapter {
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var request = urlRequest
        let names = (request.allHTTPHeaderFields ?? [:]).keys.sorted()
        request.setValue(names.joined(separator: " "), forHTTPHeaderField: "X-Signed")
        return request
    }
}

/// Records when requests finish.
private struct Ends: EventMonitor {
    let ended: Recorder<Int>

    func requestDidFinish(_ request: Request, error: (any Error)?) { ended.record(1) }
}
