internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// A hostile behaviour of a server, and the expected outcome. The client must report it once, in time, and with little
/// memory.
struct HostileCase: Sendable, CustomTestStringConvertible {
    /// The maximum by which the memory of a process may grow over its idle size, in KiB, whatever the server sends.
    static let memoryLimit = 32 * 1024

    /// Whether the memory is measured. It is not measured under a sanitizer, which allocates much memory itself.
    static let isMemoryMeasured = ProcessInfo.processInfo.environment["NETWATCH_SANITIZER"] == nil

    let testDescription: String
    let answer: ScriptedServer.Script
    /// The expected error; `nil` if a response is expected.
    var error: URLError.Code?
    var code: Int32?
    var phase: TransferFailure.Phase? = .response
    /// The status of the expected response, if any.
    var status: Int?
    var byteCount: Int?
    var kind = HostileOptions.Kind.data
    /// The total timeout of the request, in milliseconds. If it is part of the case and expires too early, the case is
    /// repeated with a longer one.
    var totalTimeout = 20_000
    var hasCredential = false
    var acceptedEncodings: String?

    init(
        _ name: String,
        _ error: URLError.Code?,
        _ code: Int32?,
        status: Int? = nil,
        _ answer: @escaping ScriptedServer.Script
    ) {
        testDescription = name
        self.error = error
        self.code = code
        self.status = status
        self.answer = answer
        if code == nil { phase = nil }
    }

    /// Creates a case whose server sends the same response to every request.
    init(
        _ name: String,
        _ error: URLError.Code?,
        _ code: Int32?,
        status: Int? = nil,
        _ text: String,
        then next: ScriptedServer.Action = .close
    ) {
        self.init(name, error, code, status: status) { _ in .send(text, then: next) }
    }

    /// Returns a copy with changed properties.
    func with(_ change: (inout HostileCase) -> Void) -> HostileCase {
        var changed = self
        change(&changed)
        return changed
    }

    /// Sends the request in a separate process.
    private func run(totalTimeout: Int) async throws -> HostileReport {
        let server = try HostileServer(answer)
        var options = server.options
        options.kind = kind
        options.totalTimeout = totalTimeout
        options.hasCredential = hasCredential
        options.acceptedEncodings = acceptedEncodings
        return try await server.run(options)
    }

    /// Whether the timeout may have expired before the server did what the case is about, on a busy machine.
    private func mayHaveEndedEarly(_ report: HostileReport) -> Bool {
        let outcome = report.outcomes.first
        return code == 28 && (outcome?.phase != phase?.rawValue || outcome?.status != status)
    }

    func check(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        var timeout = totalTimeout
        var report = try await run(totalTimeout: timeout)
        while mayHaveEndedEarly(report), timeout < 16_000 {
            timeout *= 4
            report = try await run(totalTimeout: timeout)
        }
        let outcome = try #require(report.outcomes.first)
        #expect(
            outcome.error == error.map { "URLError \($0.rawValue)" },
            "\(outcome)",
            sourceLocation: sourceLocation
        )
        #expect(outcome.transferCode == code, "\(outcome)", sourceLocation: sourceLocation)
        #expect(outcome.phase == phase?.rawValue, "\(outcome)", sourceLocation: sourceLocation)
        #expect(outcome.status == status, "\(outcome)", sourceLocation: sourceLocation)
        if let byteCount { #expect(outcome.byteCount == byteCount, sourceLocation: sourceLocation) }
        report.checkProcess(sourceLocation: sourceLocation)
    }
}

/// The output of a process that sent requests to a hostile server.
struct HostileReport: Sendable {
    var outcomes: [HostileOutcome] = []
    var memory = HostileMemory(idle: 0, peak: .max)
    /// The outcome of a later request to a well-behaved server.
    var after: HostileOutcome?

    /// Checks that all handlers were called exactly once, that the session still works, and that memory use was low.
    func checkProcess(sourceLocation: SourceLocation = #_sourceLocation) {
        for outcome in outcomes { #expect(outcome.endings == [1, 1, 1], sourceLocation: sourceLocation) }
        #expect(
            after?.status == 200 && after?.error == nil,
            "\(String(describing: after))",
            sourceLocation: sourceLocation
        )
        guard HostileCase.isMemoryMeasured else { return }
        #expect(
            memory.peak - memory.idle <= HostileCase.memoryLimit,
            "\(memory)",
            sourceLocation: sourceLocation
        )
    }
}

/// A server that behaves well only for the path `/kind`. It also runs the processes that send requests to it.
struct HostileServer {
    private let server: ScriptedServer

    init(_ answer: @escaping ScriptedServer.Script) throws {
        // Closes the connection, so that a later request does not receive hostile bytes over it.
        let kind = ScriptedServer.Action.respond(status: 200, headers: [.init("Connection", "close")])
        server = try ScriptedServer { $0.target == "/kind" ? kind : answer($0) }
    }

    var options: HostileOptions {
        HostileOptions(url: "\(server.url)/hostile", warmUpURL: "\(server.url)/kind")
    }

    /// The number of requests that received a hostile response.
    var hostileCount: Int { server.requests.filter { $0.target != "/kind" }.count }

    func run(_ options: HostileOptions) async throws -> HostileReport { try await Self.run(options) }

    static func run(_ options: HostileOptions) async throws -> HostileReport {
        let process = try Subprocess(
            ClientTestProcess.path,
            [try ClientProcessOptions.hostile(options).argument]
        )
        let outcome: Subprocess.Outcome
        do {
            outcome = try await process.outcome()
        } catch {
            process.signal(SIGKILL)
            throw error
        }
        var report = HostileReport()
        for line in outcome.output {
            let parts = line.split(separator: " ", maxSplits: 1)
            let data = Data((parts.dropFirst().first ?? "").utf8)
            switch parts.first {
            case "outcome": report.outcomes.append(try JSONDecoder().decode(HostileOutcome.self, from: data))
            case "after": report.after = try JSONDecoder().decode(HostileOutcome.self, from: data)
            case "memory": report.memory = try JSONDecoder().decode(HostileMemory.self, from: data)
            case "done": return report
            default: break
            }
        }
        throw Unexpected(
            outcome: "\(outcome.ending): \(outcome.output.suffix(3)) \(outcome.errors.suffix(10))"
        )
    }
}
