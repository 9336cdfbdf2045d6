internal import ClientTestProcess
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Requests without free descriptors, and a check that the memory measurement works.
@Suite(.timeLimit(.minutes(5))) struct ExhaustionTests {
    @Test(arguments: [HostileOptions.Kind.data, .download])
    func `requests fail without descriptors and succeed again with them`(
        kind: HostileOptions.Kind
    ) async throws {
        // Each connection is used once, so every request needs a new one.
        let server = try HostileServer { _ in
            .respond(status: 200, headers: [.init("Connection", "close")], body: Array("ok".utf8))
        }
        var options = server.options
        options.kind = kind
        options.count = 20
        options.spareDescriptors = 0
        let report = try await server.run(options)
        #expect(report.outcomes.count == 20)
        #expect(report.outcomes.allSatisfy { $0.error != nil }, "\(report.outcomes)")
        // A download may fail earlier, when it opens its file.
        if case .data = kind {
            #expect(report.outcomes.allSatisfy { $0.transferCode == 7 && $0.error == "URLError -1004" })
        }
        report.checkProcess()
    }

    @Test(.enabled(if: HostileCase.isMemoryMeasured, "a sanitizer's own memory would count"))
    func `the check detects a process that uses too much memory`() async throws {
        let server = try HostileServer { _ in .respond("ok") }
        var options = server.options
        options.wastedMemory = 40
        let memory = try await server.run(options).memory
        #expect(memory.peak - memory.idle > HostileCase.memoryLimit)
    }
}
