internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The completions of a stream are called exactly once, whatever the program does in one of them.
@Suite(.timeLimit(.minutes(5))) struct StreamReentrancyTests {
    enum Completion: CaseIterable { case write, read }

    private let server: SocketServer

    init() throws {
        // Answers only bytes with the value 2.
        server = try SocketServer { peer in
            while case let bytes = peer.read(), !bytes.isEmpty {
                if bytes.contains(2) { peer.write([3]) }
            }
        }
    }

    @Test(arguments: Completion.allCases, ReentrancyTests.Action.allCases)
    func `each completion is called once`(completion: Completion, action: ReentrancyTests.Action) async throws
    {
        let program = StreamProgram(action, port: Int(server.port))
        weak var released: SessionManager?
        let session = SessionManager(engine: try TransferEngine())
        released = session
        let stream = program.begin(consume session)
        let (calls, ends) = (Recorder<String>(), Recorder<StreamProgram.End>())
        stream.write(Data([completion == .read ? 2 : 1]), timeout: 0) { _ in
            calls.record("write")
            if completion == .write { program.act() }
        }
        if completion == .read {
            stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, _ in
                calls.record("read")
                program.act()
            }
        }
        // Without an answer of the server, this read waits until the action ends it.
        stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { data, _, error in
            ends.record(StreamProgram.End(data: data, error: error))
        }
        stream.resume()
        try await ends.wait { !$0.isEmpty }
        expect(ends.values[0], after: action)
        if action == .startAnother { try await program.others.wait { $0 == [Data([3])] } }
        program.end()
        await waitUntilReleased { released }
        #expect(ends.values.count == 1)
        #expect(calls.values.sorted() == (completion == .read ? ["read", "write"] : ["write"]))
    }

    private func expect(_ end: StreamProgram.End, after action: ReentrancyTests.Action) {
        switch action {
        case .cancel: #expect((end.error as? URLError)?.code == .cancelled, "\(end)")
        case .dropSession:
            #expect((end.error as? AFError)?.isSessionDeinitializedError == true, "\(end)")
        case .suspendAndResume, .startAnother:
            #expect(end.error == nil && end.data == Data([3]), "\(end)")
        }
    }
}

/// A program that acts in one of the completions of its stream.
private final class StreamProgram: Sendable {
    /// The result of a read.
    struct End: Sendable {
        let data: Data?
        let error: (any Error)?
    }

    private struct State {
        var session: SessionManager?
        var stream: StreamRequest?
    }

    /// What the other stream, which ``ReentrancyTests/Action/startAnother`` starts, has read.
    let others = Recorder<Data?>()
    private let action: ReentrancyTests.Action
    private let port: Int
    private let state = Lock(State())

    init(_ action: ReentrancyTests.Action, port: Int) {
        (self.action, self.port) = (action, port)
    }

    /// Takes the only reference to the session, and returns a stream that has not been started.
    func begin(_ session: SessionManager) -> StreamRequest {
        session.startRequestsImmediately = false
        let stream = session.stream(withHostName: "127.0.0.1", port: port)
        state.withLock { ($0.session, $0.stream) = (session, stream) }
        return stream
    }

    func end() {
        let (session, stream) = state.withLock { state in
            defer { state = State() }
            return (state.session, state.stream)
        }
        stream?.cancel()
        withExtendedLifetime(session) {}
    }

    func act() {
        let (session, stream) = state.withLock { state in
            defer { if action == .dropSession { state.session = nil } }
            return (state.session, state.stream)
        }
        guard let stream else { return }
        switch action {
        case .cancel: stream.cancel()
        case .suspendAndResume:
            stream.suspend().resume()
            stream.write(Data([2]), timeout: 0) { _ in }
        case .dropSession: withExtendedLifetime(session) {}
        case .startAnother:
            if let session { startAnother(in: session) }
            stream.write(Data([2]), timeout: 0) { _ in }
        }
    }

    private func startAnother(in session: SessionManager) {
        let other = session.stream(withHostName: "127.0.0.1", port: port)
        other.write(Data([2]), timeout: 0) { _ in }
        other.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { [others] data, _, _ in
            others.record(data)
            other.cancel()
        }
        other.resume()
    }
}
