internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

// Tests which requests of a damaged store are salvaged.

extension DamagedStoreTests {
    /// Sets a damaged store aside, and imports the salvaged requests into a new one. Expects that the content of every
    /// file still exists.
    ///
    /// - Returns: The store that was set aside (`nil` if it was not damaged), and the ids of the salvaged requests.
    func salvage(_ original: ExportContent) async throws -> (aside: SetAsideStore?, ids: [String]) {
        let before = try contents(below: directory.path)
        let aside = try await OfflineQueue.setAside(directory: directory.path)
        guard let aside else { return (nil, original.ids) }
        let after = Set(try contents(below: directory.path))
        #expect(before.allSatisfy(after.contains), "the content of a file was lost")
        let saved = try saved(aside)
        for request in saved.requests {
            // Damage to a smaller body is not detected, because such a body is stored in the database without a hash.
            guard request.body?.bytes ?? 0 > 64 * 1024 else { continue }
            #expect(saved.bodies[request.id] == original.bodies[request.id])
        }
        try await withQueue(directory) { queue, _ in
            let result = try await queue.importRequests(from: aside.salvage.path)
            #expect(result.imported == saved.requests.count)
            // A request whose dependencies could not be read is held.
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
        #expect(aside?.salvage.gaps.count == 2, "\(String(describing: aside?.salvage.gaps))")
        let lost =
            aside?.salvage.gaps.reduce(0) {
                $0 + Int($1.upperBound.subtractingReportingOverflow($1.lowerBound - 1).partialValue)
            } ?? 0
        #expect(ids.count == Self.count - lost && lost < 40)
        #expect(ids == ids.sorted { Int($0.dropFirst())! < Int($1.dropFirst())! })
    }

    @Test(arguments: ["request", "history"])
    func `a B-tree that leads back to an earlier row causes no endless export`(table: String) async throws {
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
    func `a B-tree that leads back to an earlier row causes no endless list`(table: String) async throws {
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
    func `a B-tree that leads back to an earlier row does not prevent salvage`(table: String)
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

    /// Changes the row number of the last row in a leaf page. A cell of a leaf page starts with its length and the row
    /// number. Row numbers up to 127 take one byte.
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
    func `requests are salvaged if an index or another table is missing`(name: String) async throws {
        let original = try await populated()
        try overwrite(page: try rootPages(of: directory)[name]!)
        let (aside, ids) = try await salvage(original)
        #expect(aside != nil && ids == original.ids)
        let saved = try saved(try #require(aside))
        if name == "lane" {
            #expect(saved.requests.allSatisfy { $0.state == .held && $0.lastError?.contains("lane") == true })
        }
        if name == "depends" { #expect(saved.requests.allSatisfy { $0.state != .blocked }) }
    }

    @Test func `a file without a database is set aside, and nothing is salvaged`()
        async throws
    {
        let original = try await populated()
        try change { $0 = Data(repeating: 0x55, count: $0.count) }
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
        for round in 0..<CheckSize.choose(small: 4, medium: 8, full: 24) {
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

    static func damaged(_ data: Data, _ round: Int, _ generator: inout SeededGenerator) -> Data {
        var data = data
        switch round % 4 {
        case 0:
            for _ in 0..<8 { data[Int.random(in: 0..<data.count, using: &generator)] ^= 0xff }
        case 1:
            let start = Int.random(in: 4096..<data.count - 4096, using: &generator)
            data.replaceSubrange(start..<start + 4096, with: Data(repeating: 0, count: 4096))
        case 2: data = data.prefix(Int.random(in: data.count / 2..<data.count, using: &generator))
        default:
            for page in [0, Int.random(in: 0..<data.count / 4096, using: &generator)] {
                let bytes = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &generator) }
                data.replaceSubrange(page * 4096..<(page + 1) * 4096, with: bytes)
            }
        }
        return data
    }

    init(_ directory: TemporaryDirectory) { self.directory = directory }

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
