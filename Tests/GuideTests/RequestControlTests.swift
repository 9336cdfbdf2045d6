import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

private final class SuspensionMonitor: EventMonitor {
    let suspended = Recorder<Void>()

    func requestDidSuspend(_ request: Request) { suspended.record(()) }
}

@Suite(.timeLimit(.minutes(5))) struct RequestControlTests {
    @Test func `a suspended request stops until it is resumed`() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"
        let server = try ScriptedServer { request in
            request.target == "/held"
                ? .send(head + "half", then: .stall(then: .send("half", then: .keep))) : .respond("other")
        }
        let sessionManager = SessionManager()
        let monitor = SuspensionMonitor()
        sessionManager.eventMonitors = [monitor]
        let order = Recorder<String?>()
        let begun = Recorder<Void>()
        let request = sessionManager.request("\(server.url)/held")
            .downloadProgress { _ in begun.record(()) }
            .responseString { order.record($0.result.value) }
        try await begun.wait { !$0.isEmpty }
        request.suspend()
        try await monitor.suspended.wait { !$0.isEmpty }
        // Waits until the suspension has taken effect: calls take effect in order, and this request is newer.
        _ = await sessionManager.request("\(server.url)/other").response()
        server.release()
        for _ in 0..<20 { _ = await sessionManager.request("\(server.url)/other").response() }
        order.record("nothing so far")
        request.resume()
        try await order.wait { $0.count == 2 }
        #expect(order.values == ["nothing so far", "halfhalf"])
    }

    @Test func `a request suspended before its start sends nothing`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        let sessionManager = SessionManager()
        sessionManager.startRequestsImmediately = false
        let request = sessionManager.request("\(server.url)/held")
        request.suspend()
        #expect(await sessionManager.request("\(server.url)/other").responseString().value == "/other")
        #expect(server.requests.count == 1)
        let text: String? = await once { done in
            request.responseString { done($0.result.value) }.resume()
        }
        #expect(text == "/held")
    }

    @Test func `a task has the state of its request`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("ok")) }
        let sessionManager = SessionManager()
        sessionManager.startRequestsImmediately = false
        let request = sessionManager.request(server.url)
        #expect(request.task?.state == .suspended)
        let states = Recorder<URLSessionTask.State?>()
        request.response { _ in states.record(request.task?.state) }
        request.resume()
        _ = await server.requests(atLeast: 1)
        #expect(request.task?.state == .running)
        server.release()
        try await states.wait { $0.count == 1 }
        #expect(states.values == [.completed])
        let cancelled = sessionManager.request(server.url).resume().cancel()
        _ = await cancelled.response()
        #expect(cancelled.task?.state == .canceling)
    }

    @Test func `cancelling calls every handler once`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let codes = Recorder<URLError.Code?>()
        let request = ClientCore.request(server.url)
            .response { codes.record(($0.error as? URLError)?.code) }
            .responseJSON { codes.record(($0.result.error as? URLError)?.code) }
            .responseString { codes.record(($0.result.error as? URLError)?.code) }
        request.cancel()
        request.cancel()
        try await codes.wait { $0.count >= 3 }
        #expect((await request.response().error as? URLError)?.code == .cancelled)
        #expect(codes.values == [.cancelled, .cancelled, .cancelled])
    }

    @Test func `cancelling a finished request has no effect`() async throws {
        let server = try ScriptedServer { _ in .respond("done") }
        let request = ClientCore.request(server.url)
        #expect(try await request.string == "done")
        request.cancel()
        #expect(try await request.string == "done")
    }
}
