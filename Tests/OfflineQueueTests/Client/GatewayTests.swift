internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// The example `Gateway`, whose server goes away and whose process is killed.
@Suite(.timeLimit(.minutes(5))) struct GatewayTests {
    private static let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "Gateway").path

    /// The readings that arrived, in the order of their first arrival. A repeated request has the same key.
    private final class Arrivals: Sendable {
        let numbers = Recorder<Int64>()
        /// The readings that arrived again.
        let repeated = Recorder<Int64>()
        private let keys = Lock<Set<String>>([])

        /// - Returns: The count of readings so far; `nil` if the request is not the first one of a reading.
        @discardableResult
        func add(_ request: ScriptedServer.Request) -> Int? {
            guard request.method == "POST", let key = request.values(of: "Idempotency-Key").first,
                let fields = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any],
                let number = fields["number"] as? Int64
            else { return nil }
            let count = keys.withLock { keys in keys.insert(key).inserted ? keys.count : nil }
            (count == nil ? repeated : numbers).record(number)
            return count
        }
    }

    private let scratch: ScratchDirectory
    private let arrivals = Arrivals()

    init() throws {
        scratch = try ScratchDirectory()
    }

    /// Starts the server at an address and a port that no other test uses, so that they stay free during an outage.
    private func server() throws -> ScriptedServer {
        try ScriptedServer(address: "127.17.0.1", port: 8017) { [arrivals] request in
            arrivals.add(request)
            return .respond(status: 201)
        }
    }

    private func queued(_ gateway: Subprocess) -> [Int64] {
        gateway.output.values.compactMap { line in
            line.hasPrefix("queued ") ? Int64(line.dropFirst("queued ".count)) : nil
        }
    }

    @Test func `every reading arrives once and in order, after an outage in which the process is killed`()
        async throws
    {
        let first = try server()
        let arguments = [scratch.file("queue"), first.url, "0.02"]
        let killed = try Subprocess(Self.program, arguments)
        try await arrivals.numbers.wait { $0.count >= 3 }
        first.stop()
        let before = killed.output.values.count
        try await killed.output.wait { $0.count >= before + 10 }
        killed.signal(SIGKILL)
        #expect(try await killed.end() == .signalled(SIGKILL))
        let second = try Subprocess(Self.program, arguments)
        try await second.output.wait { $0.count >= 10 }
        #expect(second.output.values[0] != "started with 0 requests of earlier runs")
        let expected = Set(queued(killed) + queued(second))
        let back = try server()
        try await arrivals.numbers.wait { expected.isSubset(of: $0) }
        second.signal(SIGTERM)
        #expect(try await second.end() == .exited(0))
        // Handlers of stored requests may still print lines after this one.
        #expect(second.output.values.contains("stopped") && second.errors.values.isEmpty)
        back.stop()
        let numbers = arrivals.numbers.values
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
    }

    /// The incomplete responses during which the process is killed: to the 5th, 10th and 15th reading.
    private static let incomplete: [ScriptedServer.Action] = [
        .stall(then: .close), .send("HTTP/1.1 2", then: .stall(then: .close)),
        .send("HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\npart", then: .stall(then: .close)),
    ]

    @Test func `every reading arrives once and in order, even if the process is killed during a delivery`()
        async throws
    {
        let server = try ScriptedServer { [arrivals] request in
            let (turn, rest) = (arrivals.add(request) ?? 1).quotientAndRemainder(dividingBy: 5)
            return rest == 0 && turn <= Self.incomplete.count
                ? Self.incomplete[turn - 1] : .respond(status: 201)
        }
        let arguments = [scratch.file("queue"), server.url, "0.02"]
        var expected: Set<Int64> = []
        for kill in 1...Self.incomplete.count {
            let process = try Subprocess(Self.program, arguments)
            try await arrivals.numbers.wait { $0.count == kill * 5 }
            process.signal(SIGKILL)
            #expect(try await process.end() == .signalled(SIGKILL))
            expected.formUnion(queued(process))
        }
        let last = try Subprocess(Self.program, arguments)
        try await arrivals.numbers.wait { [expected] in expected.isSubset(of: $0) && $0.count > 20 }
        last.signal(SIGTERM)
        #expect(try await last.end() == .exited(0))
        server.stop()
        let numbers = arrivals.numbers.values
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
        // Each kill left one reading whose delivery the gateway could not know.
        #expect(arrivals.repeated.values == [4, 9, 14].map { numbers[$0] })
    }

    @Test(arguments: [[], ["only-a-directory"], ["directory", "http://127.0.0.1:1/", "0"]])
    func `wrong arguments end the example with its usage`(arguments: [String]) async throws {
        let outcome = try await Subprocess(Self.program, arguments).outcome()
        #expect(outcome.ending == .exited(64))
        #expect(outcome.errors[0].hasPrefix("usage: Gateway DIRECTORY URL"))
    }
}
