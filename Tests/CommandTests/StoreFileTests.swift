internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The database of a running service, which another program reads.
@Suite(.timeLimit(.minutes(5))) struct StoreFileTests {
    /// Reads the database in `argv[1]` until it is killed.
    private static let reader = """
        import sqlite3, sys, time
        database = sqlite3.connect(sys.argv[1])
        database.execute("BEGIN")
        print(database.execute("SELECT count(*) FROM sqlite_schema").fetchone(), flush=True)
        time.sleep(300)
        """

    @Test func `the log becomes short when another program has stopped reading`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let (path, database) = (service.socket, "\(service.stateDirectory)/queue.sqlite")
        let program = try Subprocess("/usr/bin/python3", ["-c", Self.reader, database])
        try await program.output.wait { !$0.isEmpty }
        try await offPool {
            let client = try RawClient(path)
            let text = String(repeating: "x", count: 60_000)
            let body = #"{"url":"http://127.0.0.1:1/","method":"POST","queue":"always","body":"\#(text)"}"#
            for _ in 0..<400 { #expect(try client.enqueue(body).status == 202) }
        }
        func megabytes() throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(database)-wal")
            return try #require(attributes[.size] as? Int) / 1_000_000
        }
        #expect(try megabytes() >= 20)
        program.signal(SIGKILL)
        // Nothing is written any more.
        try await poll { try megabytes() <= 8 }
    }
}
