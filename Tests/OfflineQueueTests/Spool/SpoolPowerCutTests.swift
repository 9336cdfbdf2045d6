internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// A spool whose power is cut at each call to the file system, one after the other.
@Suite(.timeLimit(.minutes(5))) struct SpoolPowerCutTests {
    /// The number of random outcomes that are tested for each power cut, in addition to the worst outcome.
    private static let seeds = CheckSize.choose(small: 10, medium: 40, full: 1000)

    /// The rows that the queue would have committed to its database before the power cut.
    struct Rows: Sendable {
        /// The bodies whose rows exist, with their content.
        var kept: [SpooledBody: Data] = [:]
        var removed: [SpooledBody] = []
    }

    @Test(arguments: [false, true])
    func `every accepted body is complete after a power cut`(canClone: Bool) async throws {
        let length = try await calls(canClone: canClone)
        for cut in 1...length + 1 {
            let files = Self.files(canClone: canClone, fault: .init(powerCut: cut))
            let rows = await Self.work(files)
            for loss in Self.losses(cut) {
                let lost = await Self.lost(rows, after: loss, files)
                #expect(lost.isEmpty, "cut at call \(cut), \(loss)")
            }
        }
    }

    @Test func `after a power cut and a sweep, only accepted bodies remain`() async throws {
        for cut in 1...(try await calls(canClone: false)) + 1 {
            let files = Self.files(canClone: false, fault: .init(powerCut: cut))
            let rows = await Self.work(files)
            let names = Set(rows.kept.keys.map(\.name))
            for loss in Self.losses(cut) {
                let survivors = SimulatedSpoolFiles(files.disk.afterPowerCut(loss))
                try await BodySpool(files: survivors).sweep { names.contains($0) }
                #expect(Set(survivors.disk.names) == names, "cut at call \(cut), \(loss)")
            }
        }
    }

    /// A sync that has no effect, as if the code under test had omitted it.
    enum Forgotten: CaseIterable, Sendable {
        case sync, directorySync

        var fault: SimulatedSpoolFiles.Fault {
            switch self {
            case .sync: .init(ignoresSync: true)
            case .directorySync: .init(ignoresDirectorySync: true)
            }
        }

        /// Returns whether the body can be lost without this sync. An empty body needs no sync of its bytes.
        func costs(_ body: SpooledBody) -> Bool { self == .directorySync || body.size > 0 }
    }

    @Test(arguments: Forgotten.allCases)
    func `if a sync is missing, every power cut loses accepted bodies`(forgotten: Forgotten) async throws {
        let length = try await calls(canClone: false)
        var cutsThatCount = 0
        for cut in 1...length + 1 {
            var fault = forgotten.fault
            fault.powerCut = cut
            let files = Self.files(canClone: false, fault: fault)
            let rows = await Self.work(files)
            let lost = await Self.lost(rows, after: .worst, files)
            #expect(lost == Set(rows.kept.keys.filter(forgotten.costs)))
            cutsThatCount += lost.isEmpty ? 0 : 1
        }
        #expect(cutsThatCount > length / 2)
    }

    @Test(arguments: Forgotten.allCases)
    func `power cuts with random losses also detect a missing sync`(forgotten: Forgotten) async throws {
        let files = Self.files(canClone: false, fault: forgotten.fault)
        let rows = await Self.work(files)
        var losses = 0
        for seed in 0..<UInt64(20) {
            losses += await Self.lost(rows, after: .drawn(seed: seed), files).isEmpty ? 0 : 1
        }
        #expect(losses > 10)
    }

    // MARK: Workload

    private static func files(canClone: Bool, fault: SimulatedSpoolFiles.Fault) -> SimulatedSpoolFiles {
        SimulatedSpoolFiles(
            foreign: ["/home/me/film": [[UInt8](film)]],
            canClone: canClone,
            fault: fault
        )
    }

    /// Bodies of several sizes. `film` is larger than the chunks in which the spool reads and copies.
    private static let large = bytes(1, count: 70_000)
    private static let pieces = bytes(2, count: 3000)
    private static let film = bytes(3, count: 140_000)

    private static func bytes(_ seed: UInt64, count: Int) -> Data {
        var generator = SeededGenerator(seed: seed)
        return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    private func calls(canClone: Bool) async throws -> Int {
        let files = Self.files(canClone: canClone, fault: .init())
        let rows = await Self.work(files)
        try #require(rows.kept.count == 5 && rows.removed.count == 1)
        return files.calls
    }

    private static func losses(_ cut: Int) -> [SimulatedDisk.Loss] {
        [.worst] + (0..<seeds).map { .drawn(seed: UInt64(cut * seeds + $0)) }
    }

    /// Stores and removes bodies in all ways until the power is cut, and returns the committed rows.
    private static func work(_ files: SimulatedSpoolFiles) async -> Rows {
        let spool = BodySpool(files: files)
        var rows = Rows()
        if let body = try? await spool.store(large) { rows.kept[body] = large }
        if let body = try? await staged(in: spool) { rows.kept[body] = pieces }
        if let body = try? await spool.copy(path: "/home/me/film", limit: 1 << 20) { rows.kept[body] = film }
        if let body = try? await spool.store(Data()) { rows.kept[body] = Data() }
        if let body = try? await spool.store(Data("gone".utf8)) {
            // From here on, the deletion of the body's row counts as committed.
            rows.removed.append(body)
            await spool.remove([body.name])
        }
        if let body = try? await spool.store(Data("last".utf8)) { rows.kept[body] = Data("last".utf8) }
        return rows
    }

    private static func staged(in spool: BodySpool) async throws -> SpooledBody {
        let writer = try spool.makeWriter(limit: 3000)
        for piece in 0..<3 {
            try await writer.append(pieces[piece * 1000..<piece * 1000 + 1000])
        }
        return try await writer.finish()
    }

    private static func lost(
        _ rows: Rows,
        after loss: SimulatedDisk.Loss,
        _ files: SimulatedSpoolFiles
    ) async -> Set<SpooledBody> {
        let spool = BodySpool(files: SimulatedSpoolFiles(files.disk.afterPowerCut(loss)))
        var lost: Set<SpooledBody> = []
        for (body, bytes) in rows.kept where await content(of: body, in: spool) != bytes { lost.insert(body) }
        return lost
    }

    private static func content(of body: SpooledBody, in spool: BodySpool) async -> Data? {
        try? await spool.open(body).content()
    }
}
