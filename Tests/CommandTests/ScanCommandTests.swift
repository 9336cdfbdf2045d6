internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The scans of the service for damage.
@Suite(.timeLimit(.minutes(5))) struct ScanCommandTests {
    private let directory = try! ScratchDirectory()

    /// Enqueues requests with bodies in a file and in the database, and returns a service that has opened them again.
    private func service() async throws -> RunningService {
        let first = try await RunningService(in: directory)
        try await first.pause()
        for size in [100_000] + [Int](repeating: 60_000, count: 10) {
            let body = try directory.write([UInt8](repeating: 120, count: size), to: "body")
            try await first.keep("http://127.0.0.1:1/", "-d", "@\(body)")
        }
        try await first.stop()
        return try await RunningService(
            in: directory,
            environment: ["NETWATCH_QUEUE_SCAN_INTERVAL": "\"1ms\""]
        )
    }

    /// Overwrites bytes of a file in the state directory.
    ///
    /// - Parameter distance: The distance of the bytes from the end of the file.
    private func damage(_ name: String, _ count: Int, beforeEnd distance: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: directory.file("state/\(name)")))
        try file.seek(toOffset: try file.seekToEnd() - UInt64(distance))
        try file.write(contentsOf: Data(repeating: 0xee, count: count))
        try file.close()
    }

    @Test func `damage is found before a request needs it, and is reported everywhere`() async throws {
        let service = try await service()
        let spool = directory.file("state/spool")
        let body = try #require(try FileManager.default.contentsOfDirectory(atPath: spool).first)
        try damage("spool/\(body)", 1, beforeEnd: 1)
        // The first scan begins a minute after the start.
        try await service.hasLogged(
            "a scan of the queue has found damage: body_changed: ",
            timeout: .seconds(150)
        )
        let status = try await service.run("status", "--timeout", "10s").output
        let line = "store       damaged: a scan has found 1 problem;"
        #expect(status.contains { $0.hasPrefix(line) }, "\(status)")
        let doctor = try await Command.run("doctor", "--socket", service.socket).output
        #expect(doctor.contains { $0.contains("problem  a scan has found body_changed: ") }, "\(doctor)")
        #expect(try await service.curl("/metrics").contains("netwatch_store_scan_findings 1"))
        #expect(try await service.curl("/").contains("The queue is damaged: a scan has found 1 problem."))
        // Pages of the last body in the database.
        try damage("queue.sqlite", 8 * 4096, beforeEnd: 12 * 4096)
        try await service.hasLogged("a scan of the queue has found damage: database: ")
        #expect(try await service.curl("/healthz") == "ok")
        try await service.stop()
        let options = ["--state-dir", service.stateDirectory, "--socket", service.socket]
        let next = try await Command.start(["serve"] + options).outcome()
        #expect(next.ending == .exited(78) && next.errors.contains { $0.contains("is damaged") }, "\(next)")
    }
}
