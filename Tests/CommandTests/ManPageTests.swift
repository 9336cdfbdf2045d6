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
        #expect(list.hasSuffix(".SH SEE ALSO\n\\fBnetwatch\\fR(1)\n"))
        let root = try page("netwatch.1")
        #expect(root.contains(".SH FILES\n") && root.contains("/usr/share/doc/netwatch"))
    }

    @Test func `the pages and the completions are installed with the program, and removed with it`() throws {
        let directory = try ScratchDirectory()
        let script = "\(Self.root.path)/scripts/install-reference"
        func files() throws -> [String] {
            let found = try shell("cd \(directory.path); find . -type f -perm 644 | sort")
            return found.split(separator: "\n").map(String.init)
        }
        _ = try shell("umask 077; \(script) install \(Command.path) \(directory.path) zsh/site-functions")
        let installed = try files()
        for file in [
            "bash-completion/completions/netwatch", "fish/vendor_completions.d/netwatch.fish",
            "man/man1/netwatch-queue-list.1", "man/man1/netwatch.1", "zsh/site-functions/_netwatch",
        ] {
            #expect(installed.contains("./\(file)"), "\(installed)")
        }
        _ = try shell("\(script) uninstall \(directory.path) zsh/site-functions")
        #expect(try files() == [])
    }
}
