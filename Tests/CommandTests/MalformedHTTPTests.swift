internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// The HTTP server of the control socket with arbitrary bytes.
///
/// The environment variable `NETWATCH_SEED` repeats one message.
@Suite(.timeLimit(.minutes(20))) struct MalformedHTTPTests {
    @Test func `the messages are accepted without the changes`() async throws {
        let service = try await service()
        let path = service.socket
        let statuses = try await offPool {
            try MutatedMessage.valid.map { message in
                try Responses(to: [Array(message.utf8)], at: path).statuses
            }
        }
        #expect(statuses.allSatisfy { $0.count == 1 && (200...299).contains($0[0]) }, "\(statuses)")
    }

    @Test func `malformed messages get no 5xx, and the server closes each connection`() async throws {
        let service = try await service()
        let path = service.socket
        let count = CheckSize.choose(small: 1000, medium: 10_000, full: 100_000)
        let seconds = CheckSize.choose(small: 0, medium: 0, full: 600)
        let seed = ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
        let run = try await offPool {
            var run = MalformedRun()
            if let seed {
                run.send(seed, to: path)
            } else {
                try run.send(count, for: seconds, to: path)
            }
            return run
        }
        print("malformed HTTP: \(run.messages) messages, responses by status \(run.responses)")
        #expect(run.faults == [])
        #expect(seed != nil || Set(run.responses.keys).isSuperset(of: [200, 202, 400]))
        try await service.haveClosedConnections()
        try await service.stop()
    }

    @Test func `a fault behind another response is detected`() {
        let responses = Responses(
            text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500 Internal Server Error\r\n\r\n"
        )
        #expect(responses.statuses == [200, 500] && responses.hasFault)
    }

    /// Starts a service that sends no request.
    private func service() async throws -> RunningService {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        return service
    }
}

/// What a server sends on a connection until it closes it.
private struct Responses {
    let statuses: [Int]

    var hasFault: Bool { statuses.contains { $0 >= 500 } }

    init(text: String) {
        statuses = text.matches(of: #/HTTP/1\.1 (\d{3}) /#).compactMap { Int($0.1) }
    }

    /// Sends the pieces and the end of the stream to the socket at a path.
    init(to pieces: [[UInt8]], at path: String) throws {
        let client = try RawClient(path)
        do {
            for piece in pieces { try client.send(piece) }
        } catch let error as SystemError where [EPIPE, ECONNRESET].contains(error.errno) {
            // The server has responded, and did not wait for the rest.
        }
        client.closeOutput()
        do {
            while try client.receiveMore() {}
        } catch let error as SystemError where error.errno == ECONNRESET {
            // The server has closed the connection although it had received more.
        }
        self.init(text: client.takeReceived())
    }
}

/// Malformed messages, sent one after the other, each on its own connection.
private struct MalformedRun {
    private(set) var messages = 0
    /// The number of responses with each status.
    private(set) var responses: [Int: Int] = [:]
    private(set) var faults: [String] = []

    /// Sends at least `count` messages for at least `seconds`, and a valid request after every hundredth of them. Ends
    /// at the fifth fault.
    mutating func send(_ count: Int, for seconds: Int, to path: String) throws {
        let first = UInt64.random(in: 0 ... .max)
        let end = ContinuousClock.now + .seconds(seconds)
        while faults.count < 5, messages < count || ContinuousClock.now < end {
            send(first &+ UInt64(messages), to: path)
            guard messages % 100 == 0 else { continue }
            let valid = try RawClient(path).request(MutatedMessage.valid[0])
            if valid.status != 200 { faults.append("a valid request got \(valid.status)") }
        }
    }

    /// Sends the message of a seed.
    mutating func send(_ seed: UInt64, to path: String) {
        messages += 1
        do {
            let received = try Responses(to: MutatedMessage(seed: seed).pieces, at: path)
            for status in received.statuses { responses[status, default: 0] += 1 }
            if received.hasFault { faults.append("NETWATCH_SEED=\(seed): \(received.statuses)") }
        } catch {
            // EAGAIN: the server neither responds nor closes the connection.
            faults.append("NETWATCH_SEED=\(seed): \(error)")
        }
    }
}

extension RunningService {
    /// Waits until the service has no connections any more: only its listening socket has the path of the socket.
    fileprivate func haveClosedConnections() async throws {
        let path = socket
        try await poll {
            try String(contentsOfFile: "/proc/net/unix", encoding: .utf8).split(separator: "\n")
                .count { $0.hasSuffix(path) } == 1
        }
    }
}
