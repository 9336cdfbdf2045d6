internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Stores with damaged files.
@Suite(.timeLimit(.minutes(3))) struct DamagedStoreTests {
    private let directory: TemporaryDirectory
    private static let count = 120

    private var database: String { "\(directory.path)/queue.sqlite" }

    private func populated() async throws -> ExportContent {
        try await withQueue(directory) { queue, _ in
            try await queue.populate(Self.count)
            return try await queue.content()
        }
    }

    private func change(_ name: String = "queue.sqlite", _ body: (inout Data) -> Void) throws {
        let url = URL(fileURLWithPath: "\(directory.path)/\(name)")
        var data = try Data(contentsOf: url)
        body(&data)
        try data.write(to: url)
    }

    private func overwrite(page: Int) throws {
        try change {
            $0.replaceSubrange((page - 1) * 4096..<page * 4096, with: Data(repeating: 0x55, count: 4096))
        }
    }

    /// Returns the contents of all files below `path`, regardless of their names.
    private func contents(below path: String) throws -> [Data] {
        try FileManager.default.subpathsOfDirectory(atPath: path)
            .filter { !$0.hasSuffix("-shm") && !$0.hasSuffix("queue.lock") }
            .compactMap { FileManager.default.contents(atPath: "\(path)/\($0)") }
    }

    private func opening() async -> QueueError? {
        do {
            try await withQueue(directory) { _, _ in }
            return nil
        } catch {
            return error as? QueueError
        }
    }

    // MARK: Detection

    @Test(arguments: ["delete", "wal"]) func `another program's database is not changed`(mode: String)
        async throws
    {
        try FileManager.default.createDirectory(
            atPath: directory.path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let other = try DatabaseQueue(path: database)
        try await other.writeWithoutTransaction {
            try $0.execute(
                sql: "PRAGMA journal_mode = \(mode); CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)"
            )
        }
        try other.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: database))
        let error = await opening()
        #expect(error?.code == .storeUnusable && error?.message.contains("another program") == true)
        let code = await errorCode {
            _ = try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        }
        #expect(code == .storeUnusable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: database)) == before)
    }

    @Test func `a database of a newer netwatch is not changed`() async throws {
        _ = try await populated()
        try edit(directory, "INSERT INTO grdb_migrations VALUES ('99')")
        let before = try Data(contentsOf: URL(fileURLWithPath: database))
        let error = await opening()
        #expect(error?.code == .storeUnusable && error?.message.contains("newer") == true)
        let code = await errorCode {
            _ = try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        }
        #expect(code == .storeUnusable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: database)) == before)
    }

    @Test func `a database that another program has locked is unavailable, not damaged`() async throws {
        _ = try await populated()
        let other = try DatabaseQueue(path: database)
        try await other.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; UPDATE meta SET bytes = bytes")
        }
        let code = await opening()?.code
        try other.close()
        #expect(code == .storeUnavailable)
        #expect(await opening() == nil)
    }

    @Test(arguments: [
        "DELETE FROM meta", "UPDATE meta SET boot_id = x'00'", "DROP TABLE depends; DROP TABLE meta",
        "PRAGMA ignore_check_constraints = ON; UPDATE lane SET mode = 'mood'",
    ]) func `the tables that every start reads are checked`(sql: String) async throws {
        _ = try await populated()
        // STRICT tables reject some values that a damaged page may contain.
        try? edit(directory, sql)
        let error = await opening()
        guard sql.contains("x'00'") || error?.code == .storeUnusable else {
            Issue.record("\(sql): \(String(describing: error))")
            return
        }
    }

    @Test func `an empty database with a spool is not a new queue`() async throws {
        _ = try await populated()
        try change { $0 = Data() }
        #expect(await opening()?.code == .storeUnusable)
        let aside = try await OfflineQueue.setAside(directory: directory.path)
        #expect(aside?.salvage.waiting == 0)
        #expect(await opening() == nil)
    }

    // MARK: Setting aside

    @Test func `a sound store is set aside only on request`() async throws {
        let content = try await populated()
        #expect(try await OfflineQueue.setAside(directory: directory.path) == nil)
        #expect(await opening() == nil)
        let aside = try #require(
            try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        )
        #expect(
            aside.salvage.waiting == Self.count && aside.salvage.lostCount == 0 && aside.salvage.gaps.isEmpty
        )
        #expect(try saved(aside) == content)
    }

    private func saved(_ aside: SetAsideStore) throws -> ExportContent {
        try ExportContent(try Data(contentsOf: URL(fileURLWithPath: aside.salvage.path)))
    }

    @Test func `a store that a process owns is not set aside`() async throws {
        try await withQueue(directory) { _, _ in
            let code = await errorCode { _ = try await OfflineQueue.setAside(directory: directory.path) }
            #expect(code == .alreadyOwned)
        }
    }

    @Test func `damage that is detected later stops the queue, and the next start reports it`() async throws {
        let content = try await populated()
        // Enqueuing a request does not read this index.
        try overwrite(page: try rootPages(of: directory)["request_order"]!)
        try await withQueue(directory) { queue, store in
            let lanes = try? await store.recover(releasing: [])
            #expect(lanes == nil)
            let code = await errorCode { try await queue.populate(1, seed: 2) }
            #expect(code == .storeUnusable)
        }
        let error = await opening()
        #expect(error?.code == .storeUnusable && error?.message.contains("damaged") == true)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(try saved(aside) == content)
        #expect(await opening() == nil)
    }

    @Test func `a value of a wrong type is damage that ends the queue, not the process`() async throws {
        _ = try await populated()
        try edit(directory, schemaEdit("replace(sql, 'STRICT', '')"))
        try edit(directory, "UPDATE request SET attempts = 'three'")
        try edit(directory, schemaEdit("rtrim(sql) || ' STRICT'"))
        try await withQueue(directory) { _, store in
            #expect(await errorCode { _ = try await store.edit(.hold, ["a3"]) } == .storeUnusable)
            #expect(await errorCode { _ = try await store.enqueue(try new("late")) } == .storeUnusable)
        }
        let error = try #require(await opening())
        #expect(error.code == .storeUnusable && error.message.contains("`attempts` holds `three`"))
    }

    @Test func `a state that is invalid for its table is damage`() async throws {
        _ = try await populated()
        try edit(
            directory,
            "PRAGMA ignore_check_constraints = ON; UPDATE request SET state = 'dead' WHERE id = 'a3'"
        )
        try await withQueue(directory) { _, store in
            #expect(await errorCode { _ = try await store.details(of: "a3") } == .storeUnusable)
        }
        #expect(await opening()?.message.contains("`state` holds `dead`") == true)
    }

    private func schemaEdit(_ change: String) -> String {
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = \(change) WHERE name = 'request'"
    }

    @Test func `requests lost with their table are counted`() async throws {
        _ = try await populated()
        try overwrite(page: try rootPages(of: directory)["request"]!)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(aside.salvage.counted == Self.count && aside.salvage.waiting < Self.count)
        #expect(!aside.salvage.isWhole)
    }

    @Test func `the damage marker is removed when a full check finds nothing`() async throws {
        _ = try await populated()
        let index = try rootPages(of: directory)["request_order"]!
        let page = try Data(contentsOf: URL(fileURLWithPath: database))[(index - 1) * 4096..<index * 4096]
        try overwrite(page: index)
        try await withQueue(directory) { _, store in _ = try? await store.recover(releasing: []) }
        #expect(await opening()?.code == .storeUnusable)
        // Restores the page, as if the damage had come from a loose cable.
        try change { $0.replaceSubrange((index - 1) * 4096..<index * 4096, with: page) }
        #expect(await opening()?.code == .storeUnusable)
        #expect(try await OfflineQueue.setAside(directory: directory.path) == nil)
        #expect(await opening() == nil)
    }

    @Test func `an interrupted set-aside continues`() async throws {
        let content = try await populated()
        let target = "\(directory.path)/damaged-before"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
        try Data("why\n\(target)\n".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/queue.damaged"))
        try FileManager.default.moveItem(atPath: database, toPath: "\(target)/queue.sqlite")
        #expect(await opening()?.code == .storeUnusable)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(aside.directory == target && aside.reason == "why")
        #expect(try saved(aside) == content)
        #expect(await opening() == nil)
    }

    // MARK: Salvage

    /// Sets a damaged store aside and imports what was salvaged. Expects that no file content was deleted.
    ///
    /// - Returns: The store that was set aside, or `nil` if no damage was found, and the ids of the salvaged requests.
    private func salvage(_ original: ExportContent) async throws -> (aside: SetAsideStore?, ids: [String]) {
        let before = try contents(below: directory.path)
        let aside = try await OfflineQueue.setAside(directory: directory.path)
        guard let aside else { return (nil, original.ids) }
        let after = Set(try contents(below: directory.path))
        #expect(before.allSatisfy(after.contains), "something was deleted")
        let saved = try saved(aside)
        for request in saved.requests {
            // Smaller bodies are stored in the database without a hash, so damage to them is not detected.
            guard request.body?.bytes ?? 0 > 64 * 1024 else { continue }
            #expect(saved.bodies[request.id] == original.bodies[request.id])
        }
        try await withQueue(directory) { queue, _ in
            let result = try await queue.importRequests(from: aside.salvage.path)
            #expect(result.imported == saved.requests.count)
            // A request whose dependencies could not be salvaged is held.
            let content = try await queue.content()
            #expect(content.ids == saved.ids && content.bodies == saved.bodies)
        }
        return (aside, saved.ids)
    }

    @Test func `all requests after a damaged page are salvaged`() async throws {
        let original = try await populated()
        let leaves = try leafPages(of: "request")
        #expect(leaves.count > 4)
        try overwrite(page: leaves[leaves.count / 2])
        try overwrite(page: leaves[1])
        let (aside, ids) = try await salvage(original)
        #expect(aside?.salvage.gaps.count == 2)
        let lost =
            aside?.salvage.gaps.reduce(0) {
                $0 + Int($1.upperBound.subtractingReportingOverflow($1.lowerBound - 1).partialValue)
            } ?? 0
        #expect(ids.count == Self.count - lost && lost < 40)
        #expect(ids == ids.sorted { Int($0.dropFirst())! < Int($1.dropFirst())! })
    }

    @Test(arguments: ["request", "history"])
    func `a tree that leads back to an earlier row causes no endless export`(table: String) async throws {
        _ = try await populated()
        if table == "history" { try await giveUpAll() }
        try leadBack(table, to: 0)
        try await withQueue(directory) { queue, _ in
            let report = try await queue.verify()
            #expect(!report.isSound)
            #expect(await errorCode { _ = try await queue.content() } == .storeUnusable)
        }
    }

    @Test(arguments: ["request", "history"])
    func `a tree that leads back to an earlier row causes no endless list`(table: String) async throws {
        _ = try await populated()
        if table == "history" { try await giveUpAll() }
        // Lists read waiting requests in ascending order and finished requests in descending order.
        try leadBack(table, to: table == "request" ? 0 : 127)
        try await withQueue(directory) { queue, _ in
            var query = RequestQuery(limit: 1)
            let code = await errorCode {
                repeat { query.after = try await queue.list(query).next } while query.after != nil
            }
            #expect(code == .storeUnusable)
        }
    }

    @Test(arguments: ["request", "history"])
    func `a tree that leads back to an earlier row does not prevent salvage of the others`(table: String)
        async throws
    {
        let original = try await populated()
        if table == "history" { try await giveUpAll() }
        try leadBack(table, to: 0)
        let (aside, ids) = try await salvage(original)
        #expect(aside?.salvage.isWhole == false && ids.count == Self.count - 1)
    }

    private func giveUpAll() async throws {
        try edit(directory, "UPDATE request SET expire_at = 0, boot_expire_at = 0")
        try await withQueue(directory) { _, store in _ = try await store.expire() }
    }

    private func leadBack(_ table: String, to number: UInt8) throws {
        let leaves = try leafPages(of: table)
        try renumber(lastRowOf: leaves[leaves.count / 2], to: number)
    }

    /// Changes the row number of the last row in a leaf page. A cell of a leaf starts with its length and the row
    /// number, which takes one byte up to 127.
    private func renumber(lastRowOf leaf: Int, to number: UInt8) throws {
        try change { data in
            let page = (leaf - 1) * 4096
            func word(_ offset: Int) -> Int { Int(data[page + offset]) << 8 | Int(data[page + offset + 1]) }
            var place = page + word(8 + 2 * (word(3) - 1))
            while data[place] >= 0x80 { place += 1 }
            data[place + 1] = number
        }
    }

    @Test func `a byte counter that is too large loses no request and causes no busy loop`()
        async throws
    {
        _ = try await populated()
        try await giveUpAll()
        try edit(directory, "UPDATE meta SET history_bytes = 1 << 60")
        try await withQueue(directory) { queue, store in
            let wait = try await store.expire()
            #expect(wait != .zero)
            #expect(try await queue.statistics().counts[.dead] == Self.count)
            let report = try await queue.verify()
            #expect(report.isSound)
        }
    }

    @Test func `an expiry time that is too early is corrected, without a busy loop`()
        async throws
    {
        _ = try await populated()
        try edit(directory, "UPDATE request SET expire_at = 0 WHERE id = 'a3'")
        try await withQueue(directory) { queue, store in
            let wait = try await store.expire()
            #expect(wait ?? .zero > .seconds(60))
            #expect(try await queue.statistics().counts[.dead] == 0)
        }
    }

    @Test func `the last requests after damaged pages are salvaged`() async throws {
        let original = try await populated()
        let leaves = try leafPages(of: "request")
        for leaf in leaves.suffix(4).dropLast() { try overwrite(page: leaf) }
        let (aside, ids) = try await salvage(original)
        #expect(aside?.salvage.gaps.count == 1 && ids.last == original.ids.last)
    }

    @Test(arguments: [
        "request_order", "sqlite_autoindex_request_1", "request_expiry", "lane", "depends", "history",
    ])
    func `requests are salvaged without an index or another table`(name: String) async throws {
        let original = try await populated()
        try overwrite(page: try rootPages(of: directory)[name]!)
        let (aside, ids) = try await salvage(original)
        #expect(aside != nil && ids == original.ids)
        let saved = try saved(try #require(aside))
        if name == "lane" { #expect(saved.requests.allSatisfy { $0.state == .held }) }
        if name == "depends" { #expect(saved.requests.allSatisfy { $0.state != .blocked }) }
    }

    @Test func `a file without a database is set aside, and nothing is salvaged`()
        async throws
    {
        let original = try await populated()
        try overwrite(page: 1)
        let (aside, ids) = try await salvage(original)
        #expect(aside?.salvage.waiting == 0 && ids.isEmpty && aside?.salvage.notes.isEmpty == false)
    }

    @Test func `with any damage nothing is deleted, and the salvaged requests can be imported`()
        async throws
    {
        let original = try await populated()
        let master = try Data(contentsOf: URL(fileURLWithPath: database))
        let seed =
            ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
            ?? .random(in: 0...9999)
        var generator = SeededGenerator(seed: seed)
        var (sound, saved): (Int, [Int]) = (0, [])
        for round in 0..<CheckSize.choose(small: 3, medium: 6, full: 24) {
            let copy = TemporaryDirectory()
            try FileManager.default.copyItem(atPath: directory.path, toPath: copy.path)
            let test = DamagedStoreTests(copy)
            try test.change { $0 = Self.damaged(master, round, &generator) }
            let (aside, ids) = try await test.salvage(original)
            if aside == nil { sound += 1 } else { saved.append(ids.count) }
            #expect(Set(ids).isSubset(of: Set(original.ids)), "NETWATCH_SEED=\(seed), round \(round)")
        }
        print("NETWATCH_SEED=\(seed): unnoticed \(sound), saved of \(Self.count) each: \(saved.sorted())")
        #expect(saved.contains { $0 > Self.count / 2 }, "NETWATCH_SEED=\(seed)")
    }

    private static func damaged(_ data: Data, _ round: Int, _ generator: inout SeededGenerator) -> Data {
        var data = data
        switch round % 3 {
        case 0:
            for _ in 0..<8 { data[Int.random(in: 0..<data.count, using: &generator)] ^= 0xff }
        case 1:
            let start = Int.random(in: 4096..<data.count - 4096, using: &generator)
            data.replaceSubrange(start..<start + 4096, with: Data(repeating: 0, count: 4096))
        default: data = data.prefix(Int.random(in: data.count / 2..<data.count, using: &generator))
        }
        return data
    }

    private init(_ directory: TemporaryDirectory) { self.directory = directory }

    init() { directory = TemporaryDirectory() }

    /// Returns the leaf pages of a table, found by walking its B-tree in the database file.
    private func leafPages(of table: String) throws -> [Int] {
        let data = try Data(contentsOf: URL(fileURLWithPath: database))
        func number(_ page: Int, _ offset: Int, _ count: Int) -> Int {
            data[(page - 1) * 4096 + offset..<(page - 1) * 4096 + offset + count].reduce(0) {
                $0 << 8 | Int($1)
            }
        }
        func leaves(_ page: Int) -> [Int] {
            // https://www.sqlite.org/fileformat.html: page type 5 is an interior table page, 13 a leaf.
            guard number(page, 0, 1) == 5 else { return [page] }
            let children = (0..<number(page, 3, 2)).map { number(page, number(page, 12 + 2 * $0, 2), 4) }
            return (children + [number(page, 8, 4)]).flatMap(leaves)
        }
        return leaves(try rootPages(of: directory)[table]!)
    }
}
