internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The commands of docs/operations.md.
@Suite(.timeLimit(.minutes(5))) struct OperationsPageTests {
    private static let ids = ["order-1", "order-2"]

    private let page = try! DocumentationPage("docs/operations.md")
    private let service = try! AdministratedService()

    /// Runs a code block under a heading of the page.
    private func run(_ heading: String, block: Int = 0) async throws {
        let blocks = page.commands(under: heading)
        try #require(block < blocks.count)
        try await service.run(blocks[block])
    }

    /// Starts the service, and enqueues requests to a port at which no server listens.
    private func enqueue() async throws {
        try await service.start()
        for id in Self.ids {
            try await service.run("netwatch send --queue always --id \(id) http://127.0.0.1:1/ -d \(id)")
        }
    }

    @Test func `an export is imported into an empty queue`() async throws {
        try await enqueue()
        try await run("Export")
        try await service.run(
            """
            systemctl stop netwatch
            rm -r /var/lib/netwatch
            systemctl start netwatch
            """
        )
        #expect(try await service.waiting() == [])
        try await run("Export", block: 1)
        #expect(try await service.waiting() == Self.ids)
    }

    @Test func `a copy of the directory is restored`() async throws {
        try await enqueue()
        try await run("Copy of the directory")
        try await service.run("netwatch queue cancel --all --yes")
        #expect(try await service.waiting() == [])
        try await run("Copy of the directory", block: 1)
        #expect(try await service.waiting() == Self.ids)
    }

    @Test func `the queue moves to another machine`() async throws {
        try await enqueue()
        let blocks = page.commands(under: "Move to another machine")
        try #require(blocks.count == 2)
        try await service.run(blocks[0])
        let newMachine = try AdministratedService()
        try await newMachine.start()
        let archive = "var/backups/netwatch.tar.gz"
        try FileManager.default.copyItem(
            atPath: service.directory.file(archive),
            toPath: newMachine.directory.file(archive)
        )
        // The user `netwatch` exists only where the package is installed.
        let owner = "\(geteuid()):\(getegid())"
        try await newMachine.run(blocks[1].replacing("netwatch:netwatch", with: owner))
        #expect(try await newMachine.waiting() == Self.ids)
        try await newMachine.stop()
    }

    @Test func `a downgrade keeps the requests`() async throws {
        try await enqueue()
        let commands = try #require(page.commands(under: "Upgrade and downgrade").first)
        // The user `netwatch` exists only where the package is installed.
        try await service.run(commands.replacing(" -o netwatch -g netwatch", with: ""))
        #expect(try await service.waiting() == Self.ids)
    }

    @Test func `a damaged store is set aside, and its requests are imported`() async throws {
        try await enqueue()
        try await service.stop()
        let file = try #require(
            FileHandle(forUpdatingAtPath: service.directory.file("var/lib/netwatch/queue.sqlite"))
        )
        try file.seek(toOffset: 4096)
        try file.write(contentsOf: Data(repeating: 0xff, count: 3 * 4096))
        try file.close()
        try await run("Repair a damaged store")
        #expect(try await service.waiting() == Self.ids)
    }
}
