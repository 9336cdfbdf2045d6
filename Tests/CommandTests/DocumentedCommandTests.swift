internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The commands of the documentation, in the ways that `DocumentedCommands` lists.
@Suite(.timeLimit(.minutes(5))) struct DocumentedCommandTests {
    /// A code block that this suite runs.
    struct Block: Sendable, CustomTestStringConvertible {
        let page: String
        /// The place of the block on the page, from 0.
        let number: Int
        /// The place of the block below its heading, from 1.
        let place: Int
        let commands: DocumentedCommands

        var testDescription: String { "\(page), \(commands.heading), \(number)" }

        var text: String {
            get throws { try DocumentedCommandTests.blocks(of: DocumentationPage(page))[number].text }
        }
    }

    private static func blocks(of page: DocumentationPage) -> [DocumentationPage.CodeBlock] {
        page.codeBlocks.filter { DocumentedCommands.languages.contains($0.language) }
    }

    private static let all: [Block] = DocumentedCommands.pages.sorted { $0.key < $1.key }.flatMap {
        page,
        commands in
        commands.enumerated().map { number, block in
            let place = commands.prefix(number + 1).count { $0.heading == block.heading }
            return Block(page: page, number: number, place: place, commands: block)
        }
    }

    // MARK: The list

    @Test func `every code block with commands is in the list`() throws {
        let pages = try DocumentationPage.all()
        for page in pages {
            let listed = DocumentedCommands.pages[page.path, default: []].map(\.heading)
            #expect(Self.blocks(of: page).map(\.heading) == listed, "\(page.path)")
        }
        #expect(Set(DocumentedCommands.pages.keys).subtracting(pages.map(\.path)) == [])
    }

    @Test func `a code block without a language contains no command`() throws {
        for page in try DocumentationPage.all() {
            let lines = page.codeBlocks(in: "").flatMap { $0.text.split(separator: "\n") }
            let commands = lines.filter { $0.hasPrefix("$ ") || $0.hasPrefix("netwatch ") }
            #expect(commands == [], "\(page.path)")
        }
    }

    @Test func `the suites and scripts of the list exist, and name the pages`() throws {
        let files = try Repository.swiftFiles(in: "Tests")
        for block in Self.all {
            switch block.commands.rule {
            case .suite(let name):
                let file = try #require(files.first { $0.hasSuffix("/\(name).swift") }, "\(name)")
                let page = block.page.split(separator: "/").last.map(String.init) ?? block.page
                #expect(try Repository.text(file).contains(page), "\(block.testDescription)")
            case .script("scripts/check-systemd"):
                let lines = try Repository.text("scripts/check-systemd").split(separator: "\n")
                let calls = lines.map { $0.drop { $0 == " " } }
                let heading = block.commands.heading
                let isRun = [heading, "'\(heading)'", "\"\(heading)\""].contains { written in
                    let call = "documented \(block.page) \(written) \(block.place)"
                    return calls.contains { $0 == call || $0.hasPrefix(call + " ") }
                }
                #expect(isRun, "\(block.testDescription)")
            case .script(let path): _ = try Repository.text(path)
            case .shell, .lines, .make, .never: break
            }
        }
    }

    @Test func `the sizes in README.md are those of the last measurement`() throws {
        let measured = try Set(DocumentationPage("docs/evidence.md").rows)
        let rows = try DocumentationPage("README.md").rows
        let sizes = rows.filter { $0.count == 3 && $0[1].hasSuffix(" MiB") }
        #expect(!sizes.isEmpty && measured.isSuperset(of: sizes), "\(sizes)")
    }

    // MARK: The commands

    @Test(
        .enabled(if: access("/usr/bin/make", X_OK) == 0, "make is not installed"),
        arguments: all.filter { if case .make = $0.commands.rule { true } else { false } }
    )
    func `each target exists`(block: Block) async throws {
        for line in try Self.commands(of: block.text) {
            let words = line.split(separator: " ").map(String.init)
            try #require(words.first == "make")
            let outcome = try await Subprocess("/usr/bin/make", ["-n"] + words.dropFirst()).outcome()
            #expect(outcome.ending == .exited(0), "\(line): \(outcome.errors)")
        }
    }

    @Test(
        .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
        .enabled(if: access("/usr/bin/curl", X_OK) == 0, "curl is not installed"),
        arguments: all.filter { if case .shell = $0.commands.rule { true } else { false } }
    )
    func `the block works`(block: Block) async throws {
        let machine = try await DocumentedMachine()
        try await machine.run(block.text)
        try await machine.service.stop()
    }

    @Test(
        .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
        .enabled(if: access("/usr/bin/script", X_OK) == 0, "script is not installed"),
        arguments: all.filter { if case .lines = $0.commands.rule { true } else { false } }
    )
    func `each line works`(block: Block) async throws {
        guard case .lines(let interrupted) = block.commands.rule else { return }
        let machine = try await DocumentedMachine()
        for command in try Self.commands(of: block.text) {
            if interrupted.contains(where: command.hasPrefix) {
                try await machine.interrupt(command)
            } else {
                try await machine.run(command)
            }
        }
        try await machine.service.stop()
    }

    /// Returns the lines of a block that are commands, without comments.
    private static func commands(of text: String) -> [String] {
        let lines = text.split(separator: "\n").map(String.init)
        let marked = lines.filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }
        return (marked.isEmpty ? lines : marked).map { $0.replacing(/\s+# .*$/, with: "") }
    }
}

/// A machine on which the commands of the documentation run: a service that watches a host, the files that the commands
/// name, and a server at the other end of a cable instead of the hosts that they name.
struct DocumentedMachine {
    /// The id that docs/commands.md abbreviates.
    private static let id = "01a1fd77-5b52"

    private let cable = try! VethTestbed()
    private let server: ScriptedServer
    let service: AdministratedService

    init() async throws {
        // Meets each `--expect` of the pages.
        let answer = ScriptedServer.Action.respond(
            status: 201,
            headers: [.init("Content-Type", "application/json"), .init("X-Box", "1")],
            body: Array(#"{"stored":true}"#.utf8)
        )
        server = try ScriptedServer(address: VethTestbed.farAddress, port: 80, in: cable.far) { _ in answer }
        service = try AdministratedService(in: cable.near)
        let directory = service.directory
        let configuration = "[[host]]\nname = \"api\"\nroute = \"127.0.0.1\"\n"
        try directory.write(Array(configuration.utf8), to: "etc/netwatch/netwatch.toml")
        for name in ["order.json", "r.json", "day.tar"] {
            try directory.write(Array("{}".utf8), to: "root/\(name)")
        }
        try directory.write(Array("#!/bin/sh\n".utf8), to: "root/backup")
        try shell("chmod +x \(directory.file("root/backup"))")
        try await service.start()
        try await service.run("netwatch send http://\(VethTestbed.farAddress)/ --id \(Self.id) --at 1h")
    }

    /// Runs commands until they end.
    func run(_ commands: String) async throws {
        try await service.run(onTerminal(local(commands)))
    }

    /// Runs a command that prints at least one line and ends only by SIGINT.
    func interrupt(_ command: String) async throws {
        try await service.interrupt(local(command))
    }

    /// Replaces the hosts by the address of the server, which has no certificate.
    private func local(_ commands: String) -> String {
        let host = /(?:[a-z]+\.)*example\.com|[a-z]+\.(?:example|internal)\b/
        return commands.replacing("https://", with: "http://").replacing(host, with: VethTestbed.farAddress)
    }

    /// Runs `--live` on a terminal, on which `q` is pressed.
    private func onTerminal(_ command: String) -> String {
        guard command.hasSuffix(" --live") else { return command }
        return "printf q | TERM=xterm script -qec '\(command)' /dev/null"
    }
}
