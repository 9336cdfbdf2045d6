internal import ClientVictim
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Requests without free descriptors, and a check that the memory measurement works.
@Suite(.timeLimit(.minutes(3))) struct ExhaustionTests {
    @Test(arguments: [HostileOrders.Kind.data, .download])
    func `requests fail without descriptors and succeed again with them`(
        kind: HostileOrders.Kind
    ) async throws {
        // Each connection is used once, so every request needs a new one.
        let server = try HostileServer { _ in
            .respond(status: 200, headers: [.init("Connection", "close")], body: Array("ok".utf8))
        }
        var orders = server.orders
        orders.kind = kind
        orders.count = 20
        orders.spareDescriptors = 0
        let report = try await server.run(orders)
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
        var orders = server.orders
        orders.hoard = 40
        let memory = try await server.run(orders).memory
        #expect(memory.peak - memory.idle > HostileCase.memoryLimit)
    }
}
