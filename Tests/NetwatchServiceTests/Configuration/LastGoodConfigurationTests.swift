internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct LastGoodConfigurationTests {
    private let directory = try! ScratchDirectory()
    private var lastGood: LastGoodConfiguration { LastGoodConfiguration(stateDirectory: directory.path) }

    private func files(_ environment: [String: String] = [:]) -> ConfigurationFiles {
        ConfigurationFiles(path: directory.file("a.toml"), environment: environment)
    }

    private func write(_ text: String) throws { try directory.write(Array(text.utf8), to: "a.toml") }

    private func start(
        _ environment: [String: String] = [:],
        _ base: ServiceConfiguration = ConfigurationReaderTests.base
    ) throws -> StartConfiguration {
        try StartConfiguration.reading(files(environment), into: base, replacedBy: lastGood)
    }

    /// Stores the configuration of the file as the last good one.
    private func keep(_ text: String, _ environment: [String: String] = [:]) throws -> ServiceConfiguration {
        try write(text)
        let configuration = try files(environment).read(into: ConfigurationReaderTests.base).configuration
        #expect(try lastGood.keep(configuration.values) == nil)
        return configuration
    }

    /// The faults of a start.
    private func faults(_ base: ServiceConfiguration = ConfigurationReaderTests.base) -> InvalidConfiguration?
    {
        do throws(InvalidConfiguration) {
            _ = try StartConfiguration.reading(files(), into: base, replacedBy: lastGood)
            return nil
        } catch {
            return error
        }
    }

    @Test func `files with a fault are replaced by the values of files and variables that were kept`() throws
    {
        let kept = try keep(
            """
            [[host]]
            name = "a"
            url = "https://a.example/"
            http-version = "2"
            [queue]
            host-weights = { "a.example" = 3 }
            lane-weights = { "\\"b\\" \\\\ \\u0007" = 4, c = 2 }
            [queue.limits]
            lane-share = 0.25
            [[hook]]
            program = "/bin/echo"
            arguments = ["a\\nb", "ü"]
            hosts = ["a"]
            """,
            ["NETWATCH_QUEUE_INFLIGHT": "9"]
        )
        try write("[queue]\nttl = \"2d\"\nlane-weights = 3\n[queue.limits]\nlane-share = 0.25\ninflght = 1\n")
        let start = try start(["NETWATCH_QUEUE_INFLIGHT": "10"])
        let new = start.configuration
        #expect(new.queue == kept.queue && new.queue.inflight == 9 && new.queue.laneWeights.count == 2)
        #expect(new.hosts == kept.hosts && new.hooks == kept.hooks && new.hooks.count == 1)
        #expect(new.values.texts == kept.values.texts)
        let fallback = try #require(start.fallback)
        let file = directory.file("a.toml")
        #expect(
            fallback.faults.map { $0.hasPrefix("\(file):3:1: `queue.lane-weights` is 3") } == [true, false]
        )
        #expect(fallback.faults[1].hasPrefix("\(file):6:1: [queue.limits]: `inflght` is not a key"))
        // The share is the same, the faulty keys are in the faults, and the others are no longer set.
        let ignored = ["queue.inflight", "queue.host-weights", "queue.ttl", "host", "hook"]
        #expect(fallback.ignoredKeys == ignored)
        let list = ignored.map { "`\($0)`" }.joined(separator: ", ")
        #expect(
            fallback.summary
                == "\(fallback.faults[0]); other faults: 1; other changes that are ignored: \(list)"
        )
        // The mode is at least as strict as that of any file of the configuration.
        var status = stat()
        #expect(stat(lastGood.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(fallback.kept.timeIntervalSince1970 == Double(status.st_mtim.tv_sec))
    }

    @Test(arguments: [
        ("tttl = 1", ["queue.rates", "queue.ttl", "host"]),
        ("ttl = 1", ["queue.rates", "host"]),
        ("ttl = 1\nrates = [\"10/s\"]\n[[host]]\nroute = \"192.0.2.1\"", []),
        ("ttl = \"1", []), ("[queeu]\nttl = \"1d\"", []), ("[[limits]]\nrequests = 1", []),
    ])
    func
        `keys and hosts that are no longer set are ignored changes, unless they may be in a part with a fault`(
            queue: String,
            expected: [String]
        ) throws
    {
        _ = try keep("[queue]\nttl = \"3d\"\nrates = [\"10/s\"]\n[[host]]\nroute = \"192.0.2.1\"\n")
        try write("[queue]\n\(queue)\n")
        #expect(try #require(try start().fallback).ignoredKeys == expected)
    }

    @Test func `without a replacement, and with correct files, nothing is replaced`() throws {
        try write("inflght = 1\n")
        #expect(faults()?.problems.count == 1, "a first start")
        _ = try keep("[queue]\ninflight = 3\n")
        #expect(try start().fallback == nil)
        try write("inflght = 1\n")
        #expect(try start().fallback != nil)
        #expect(throws: InvalidConfiguration.self) {
            try StartConfiguration.reading(files(), into: ConfigurationReaderTests.base, replacedBy: nil)
        }
    }

    @Test func `a missing main file is a fault only if the last good configuration was read from it`() throws
    {
        let paths = ServicePaths(environment: ["CONFIGURATION_DIRECTORY": directory.path])
        func start() throws -> StartConfiguration {
            let files = paths.configurationFiles(named: nil)
            return try .reading(files, into: ConfigurationReaderTests.base, replacedBy: lastGood)
        }
        let none = try start()
        #expect(none.fallback == nil && none.configuration.values.files == [])
        _ = try lastGood.keep(none.configuration.values)
        #expect(try start().fallback == nil)
        let file = try directory.write(Array("[queue]\ninflight = 3\n".utf8), to: "netwatch.toml")
        _ = try lastGood.keep(try start().configuration.values)
        try #require(unlink(file) == 0)
        let replaced = try start()
        #expect(
            replaced.fallback?.faults == ["\(file): the file is missing; an empty file selects the defaults"]
        )
        #expect(replaced.configuration.queue.inflight == 3 && replaced.configuration.values.files == [file])
    }

    @Test(arguments: ["inflight = 8", "", "cut", "large", "fifo"])
    func `a damaged last good configuration is named after the faults, and set aside by the next one`(
        damage: String
    ) throws {
        _ = try keep("[queue]\ninflight = 9\n")
        let content = try String(contentsOfFile: lastGood.path, encoding: .utf8)
        switch damage {
        case "cut": try directory.write(Array(content.utf8.dropLast(13)), to: "last-good.toml")
        case "large":
            try #require(truncate(lastGood.path, off_t(LastGoodConfiguration.longestFile + 1)) == 0)
        case "fifo": try #require(unlink(lastGood.path) == 0 && mkfifo(lastGood.path, 0o600) == 0)
        default:
            let changed = damage.isEmpty ? "" : content.replacing("inflight = 9", with: damage)
            try directory.write(Array(changed.utf8), to: "last-good.toml")
        }
        try write("inflght = 1\n")
        let faults = try #require(self.faults()).problems.map(\.description)
        #expect(faults.count == 2 && faults[0].contains("`inflght` is not a key"), "\(faults)")
        #expect(faults[1].hasPrefix("\(lastGood.path): the last good configuration "), "\(faults)")
        try write("[queue]\ninflight = 7\n")
        let note = try lastGood.keep(
            try files().read(into: ConfigurationReaderTests.base).configuration.values
        )
        #expect(note?.description.hasPrefix("the last good configuration ") == true)
        #expect(access("\(lastGood.path).damaged", F_OK) == 0)
        try write("inflght = 1\n")
        #expect(try start().configuration.queue.inflight == 7)
    }

    @Test
    func `a group database that cannot be read now is not replaced, also for the last good configuration`()
        throws
    {
        var base = ConfigurationReaderTests.base
        base.lookUpGroup = { (_) throws(SystemError) in throw SystemError(call: "getgrnam_r", errno: EIO) }
        let group = SystemGroup(name: "g", id: 1)
        var working = base
        working.lookUpGroup = { (_) throws(SystemError) in group }
        try write("[access]\nread-groups = [\"g\"]\n")
        _ = try lastGood.keep(try files().read(into: working).configuration.values)
        #expect(faults(base)?.problems.map(\.isTemporary) == [true])
        try write("inflght = 1\n")
        let both = try #require(faults(base))
        #expect(both.problems.map(\.isTemporary) == [false, true] && both.isTemporary)
        #expect(try start([:], working).configuration.access.readGroups == [group])
    }

    @Test func `the same values are not written again`() throws {
        let values = try keep("[queue]\ninflight = 3\n").values
        let inode = try Inode(at: lastGood.path)
        #expect(try lastGood.keep(values) == nil)
        #expect(try Inode(at: lastGood.path) == inode)
        var other = values
        other.texts["queue.inflight"] = "4"
        #expect(try lastGood.keep(other) == nil)
        #expect(try Inode(at: lastGood.path) != inode)
    }

    @Test func `a reload ends the use of the last good configuration, except for keys that need a restart`()
        async throws
    {
        _ = try keep("[web]\nlisten = \"127.0.0.1:9\"\n[queue]\ninflight = 3\n")
        try write("inflght = 1\n")
        let start = try start()
        let base = ConfigurationReaderTests.base
        let files = files()
        let inUse = ConfigurationInUse(start, path: files.path) { () throws(InvalidConfiguration) in
            try files.read(into: base).configuration
        }
        #expect(inUse.fallback != nil)
        #expect(await inUse.review().faults.count == 1)
        try write("[web]\nlisten = \"127.0.0.1:8\"\n[queue]\ninflight = 4\n[[host]]\nroute = \"127.0.0.1\"\n")
        let changed = ConfigurationInUse.Review(
            reloadKeys: ["queue.inflight", "host"],
            restartKeys: ["web.listen"]
        )
        #expect(await inUse.review() == changed)
        let new = try await inUse.read().values
        #expect(inUse.apply(new) == ["web.listen"])
        #expect(inUse.fallback == nil)
        #expect(await inUse.review() == ConfigurationInUse.Review(restartKeys: ["web.listen"]))
    }
}
