internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Reads, writes, pauses and cancellations in random order, with an echo server.
@Suite(.timeLimit(.minutes(5))) struct StreamModelTests {
    private static let seeds: [UInt64] = {
        let one = getenv("NETWATCH_SEED").flatMap { UInt64(String(cString: $0)) }
        return one.map { [$0] } ?? Array(1...60)
    }()

    @Test func `no byte is lost, repeated or reordered, and every completion is called once`() async throws {
        let server = try SocketServer.echo()
        for seed in Self.seeds {
            var run = StreamModelRun(seed: seed, port: Int(server.port))
            let violations = try await run.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test func `every completion is called once, however the connection ends`() async throws {
        let server = try SocketServer { peer in
            // The server echoes a little data and then resets the connection.
            peer.resetWhenClosed()
            for _ in 0..<4 { peer.write(peer.read(atMost: 3000)) }
        }
        for seed in Self.seeds {
            var run = StreamModelRun(seed: seed, port: Int(server.port))
            let violations = try await run.runUntilCancelled()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }
}

/// A run of the model: a connection, and the results that its completions received.
private struct StreamModelRun {
    private enum Event: Sendable {
        case read(Int, StreamRead)
        case written(Int, TransferFailure?)
    }

    private let connection: StreamConnection
    private let events = Recorder<Event>()
    private var random: SeededGenerator
    private var sent: [UInt8] = []
    private var ranges: [Int: ClosedRange<Int>] = [:]
    private var givenUp: Set<Int> = []
    private var asked = 0
    private var reads: [Int] = []

    init(seed: UInt64, port: Int) {
        random = SeededGenerator(seed: seed)
        connection = TransferEngine.shared.stream(to: "127.0.0.1", port: port)
    }

    mutating func run() async throws -> [String] {
        for _ in 0..<Int.random(in: 20...120, using: &random) { await step() }
        connection.resume()
        connection.closeWrite()
        let rest = await connection.readAll()
        let asked = asked
        try await events.wait { $0.count >= asked }
        return violations(rest: rest.bytes) + (rest.failure.map { ["the end: \($0)"] } ?? [])
    }

    mutating func runUntilCancelled() async throws -> [String] {
        for _ in 0..<Int.random(in: 5...60, using: &random) { await step() }
        connection.cancel()
        let asked = asked
        try await events.wait { $0.count >= asked }
        // The loop runs operations in order. When this write has ended, any second call of a completion would have
        // happened.
        _ = await connection.write([])
        return countViolations()
    }

    private mutating func step() async {
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<4: write()
        case 4..<8: read()
        case 8: connection.suspend()
        case 9: connection.resume()
        case 10:
            guard let number = reads.randomElement(using: &random) else { return }
            givenUp.insert(number)
            connection.cancel(number)
        default: for _ in 0..<Int.random(in: 0..<30, using: &random) { await Task.yield() }
        }
    }

    private mutating func write() {
        let count = Int.random(in: 0...2000, using: &random)
        let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        sent += bytes
        let (events, index) = (events, asked)
        asked += 1
        connection.write(bytes, timeout: nil) { events.record(.written(index, $0)) }
    }

    private mutating func read() {
        let minimum = Int.random(in: 0...3000, using: &random)
        let maximum = max(1, minimum) + Int.random(in: 0...3000, using: &random)
        let (events, index) = (events, asked)
        asked += 1
        ranges[index] = max(1, minimum)...maximum
        let number = connection.read(atLeast: minimum, atMost: maximum, timeout: nil) {
            events.record(.read(index, $0))
        }
        reads.append(number)
    }

    private func violations(rest: [UInt8]) -> [String] {
        var violations = countViolations()
        var received: [UInt8] = []
        var lastWrite = -1
        for event in events.values {
            switch event {
            case .written(let index, let failure):
                if let failure { violations.append("write \(index): \(failure)") }
                if index < lastWrite { violations.append("write \(index) after \(lastWrite)") }
                lastWrite = index
            case .read(let index, let read):
                received += read.bytes
                if let problem = problem(of: read, ranges[index]!) {
                    violations.append("read \(index): \(problem)")
                }
            }
        }
        if received + rest != sent { violations.append("received other bytes than were sent") }
        return violations
    }

    private func problem(of read: StreamRead, _ range: ClosedRange<Int>) -> String? {
        if let failure = read.failure {
            return failure.code == 42 && read.bytes.isEmpty && !givenUp.isEmpty ? nil : "\(failure)"
        }
        if read.bytes.count > range.upperBound { return "\(read.bytes.count) bytes of \(range)" }
        if read.bytes.count < range.lowerBound, !read.isAtEnd {
            return "too few: \(read.bytes.count) of \(range)"
        }
        return nil
    }

    private func countViolations() -> [String] {
        let indices = events.values.map { event in
            switch event {
            case .read(let index, _), .written(let index, _): index
            }
        }
        return indices.sorted() == Array(0..<asked) ? [] : ["called: \(indices)"]
    }
}
