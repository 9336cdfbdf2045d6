internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The man pages, which `scripts/man` generates from `--help`.
@Suite(.timeLimit(.minutes(5))) struct ManPageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `a page lists subcommands, values and defaults`() throws {
        let directory = try ScratchDirectory()
        _ = try shell("\(Self.root.path)/scripts/man \(Command.path) \(directory.path)")
        func page(_ name: String) throws -> String {
            try String(contentsOfFile: directory.file(name), encoding: .utf8)
        }
        #expect(
            try page("netwatch-queue.1").contains(
                "\\fBnetwatch queue\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR\n"
            )
        )
        let list = try page("netwatch-queue-list.1")
        #expect(list.contains("(default: 100)") && list.contains("(values: text, json; default: text)"))
        #expect(list.contains("Exit status: 0"))
    }
}
