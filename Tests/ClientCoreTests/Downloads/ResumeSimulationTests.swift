internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Downloads that are interrupted at any moment and in any way.
@Suite(.timeLimit(.minutes(5))) struct ResumeSimulationTests {
    @Test func `a finished file is exactly one version, whatever failed before`() throws {
        var whole = 0
        for seed in seeds(100) {
            var simulation = try ResumeSimulation(seed: seed, fault: .none)
            let ending = try simulation.run()
            #expect(!ending.isViolation, "\(ending); replay with NETWATCH_SEED=\(seed)")
            if ending == .whole { whole += 1 }
        }
        // The simulation has verified little if it completed only a few downloads.
        #expect(whole > 30 || seeds(100).count == 1)
    }

    @Test(arguments: [ResumeSimulation.Fault.believesUnsyncedBytes, .believesEveryPart])
    func `the simulation detects faults`(_ fault: ResumeSimulation.Fault) throws {
        let notices = try (UInt64(1)...300).contains { seed in
            var simulation = try ResumeSimulation(seed: seed, fault: fault)
            return try simulation.run().isViolation
        }
        #expect(notices)
    }

    @Test func `a process killed at any moment leaves a file that can be continued`() async throws {
        let directory = try ScratchDirectory()
        let target = directory.file("part")
        for _ in 0..<8 {
            await #expect(processExitsWith: .signal(SIGKILL)) { [target = target as String] in
                try KilledDownload(target: target).run()
            }
            let bytes = FileManager.default.contents(atPath: target).map { Array($0) } ?? []
            #expect(bytes == KilledDownload.bytes(0..<bytes.count))
        }
        let download = try PartialDownload.kept(at: URL(fileURLWithPath: target), for: get().url!)
        let offset = try #require(download.resumption?.offset)
        #expect(offset == download.received && offset > 0)
    }
}

/// A download in a separate process, which is killed while it writes.
struct KilledDownload {
    let target: String

    static func bytes(_ range: Range<Int>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    func run() throws {
        let download = try PartialDownload.kept(
            at: URL(fileURLWithPath: target),
            for: get().url!,
            syncInterval: 10_000
        )
        if let record = download.resumption {
            try download.continueWriting(from: record.offset, total: nil)
        } else {
            try download.startOver(get(), transferHead(200, ["Accept-Ranges": "bytes", "ETag": "\"v1\""]))
        }
        // Append some bytes first, so that every process makes progress.
        try append(to: download, 1000)
        try startKiller()
        while true { try append(to: download, 777) }
    }

    private func append(to download: PartialDownload, _ count: Int) throws {
        let first = Int(download.received)
        try download.append(Self.bytes(first..<first + count))
    }

    /// Kills the process after a random time, at any point of the download.
    private func startKiller() throws {
        let delay = useconds_t.random(in: 0..<20_000)
        try startDetachedThread(named: "killer") {
            usleep(delay)
            kill(getpid(), SIGKILL)
        }
    }
}
