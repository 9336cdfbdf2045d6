internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Setting the wall clock says nothing about the network.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .enabled(if: SystemCompiler.isInstalled, "needs the C compiler `cc`")
)
struct WallClockTests {
    /// A wall clock that only the processes with its environment read. A test must not set the machine's clock.
    private struct WallClock {
        /// Adds the number of seconds in the file `CLOCK_OFFSET` to `CLOCK_REALTIME`.
        private static let source = """
            #define _GNU_SOURCE
            #include <fcntl.h>
            #include <stdlib.h>
            #include <sys/mman.h>
            #include <sys/syscall.h>
            #include <time.h>
            #include <unistd.h>

            static const volatile long *offset;

            __attribute__((constructor)) static void map_offset(void) {
                int file = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
                void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
                if (mapped == MAP_FAILED) abort();
                offset = mapped;
                close(file);
            }

            int clock_gettime(clockid_t clock, struct timespec *time) {
                int result = (int)syscall(SYS_clock_gettime, clock, time);
                if (result == 0 && clock == CLOCK_REALTIME && offset) time->tv_sec += *offset;
                return result;
            }

            """

        let environment: [String: String]
        private let offset: String

        init(in directory: ScratchDirectory) async throws {
            offset = try directory.write([UInt8](repeating: 0, count: MemoryLayout<Int>.size), to: "offset")
            let library = try await SystemCompiler.library(Self.source, in: directory)
            environment = ["LD_PRELOAD": library, "CLOCK_OFFSET": offset]
        }

        func set(ahead seconds: Int) throws {
            // The processes have mapped this file, so it must not be replaced.
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: offset))
            try file.write(contentsOf: withUnsafeBytes(of: seconds) { Data($0) })
            try file.close()
        }
    }

    private let directory = try! ScratchDirectory()
    private let testbed = try! VethTestbed()
    private static let (host, other) = (VethTestbed.farAddress, VethTestbed.remoteAddress)

    /// Sets the clock, and then removes the path to the other host. Whenever a monitor has processed notifications, it
    /// compares the clocks.
    private func setClock(_ clock: WallClock) throws {
        try clock.set(ahead: 3600)
        try testbed.near.ip("route add blackhole \(Self.other)")
    }

    @Test func `when the wall clock is set, the path generation stays`() async throws {
        let clock = try await WallClock(in: directory)
        let process = try Command.start(
            ["host", Self.host, Self.other, "--format", "json"],
            environment: clock.environment,
            in: testbed.near
        )
        defer { process.signal(9) }
        func lines(of host: String) throws -> [[String: Any]] {
            try process.output.values.map(Command.json).filter { $0["host"] as? String == host }
        }
        try await process.output.wait { $0.count == 2 }
        try setClock(clock)
        try await process.output.wait { $0.contains { $0.contains("notReachable") } }
        let time = try #require(try lines(of: Self.other).last?["time"] as? String)
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        #expect(try format.parse(time) > .now, "the command does not use the clock of the test")
        #expect(try lines(of: Self.host).map { $0["path_generation"] as? Int } == [1])
    }

    @Test func `when the wall clock is set, attempts in flight continue`() async throws {
        try testbed.far.ip("addr add \(Self.other)/32 dev far0")
        let server = try ScriptedServer(address: Self.host, in: testbed.far) { _ in
            .stall(then: .respond(""))
        }
        let lost = try ScriptedServer(address: Self.other, in: testbed.far) { _ in .stall(then: .close) }
        let clock = try await WallClock(in: directory)
        let service = try await RunningService(
            in: directory,
            namespace: testbed.near,
            environment: clock.environment
        )
        let once = try await service.keep(server.url, "-d", "1", "--at-most-once")
        let repeatable = try await service.keep(server.url, "-d", "2")
        let interrupted = try await service.keep(lost.url, "-d", "3", "--at-most-once")
        await server.requests(atLeast: 2)
        await lost.requests(atLeast: 1)
        try setClock(clock)
        // If the step of the clock ended the other attempts, it would do so before the lost path ends this one.
        let held = try await service.request(interrupted) { $0["state"] as? String == "held" }
        #expect((held["last_error"] as? String)?.contains("was lost") == true, "\(held)")
        for id in [once, repeatable] {
            #expect(try await service.request(id)["state"] as? String == "inflight")
        }
        server.release()
        for id in [once, repeatable] {
            #expect(try await service.end(of: id)["state"] as? String == "delivered")
        }
        #expect(server.requests.count == 2)
    }
}
