internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// scripts/release, in a repository with the files that it changes. A program that writes packages replaces `make`.
@Suite(
    .enabled(if: access("/usr/bin/git", X_OK) == 0, "git is not installed"),
    .timeLimit(.minutes(5))
)
struct ReleaseScriptTests {
    private static let sources = "Sources/ClientCore/Configuration/NetwatchVersion.swift"

    private let directory = try! ScratchDirectory()

    init() async throws {
        for folder in ["scripts", "bin", "Sources/ClientCore/Configuration"] {
            try FileManager.default.createDirectory(
                atPath: directory.file(folder),
                withIntermediateDirectories: true
            )
        }
        for path in ["scripts/release", Self.sources] { try write(try Repository.text(path), to: path) }
        try write("## Unreleased\n\n- a change\n\n## 0.0.1 (2026-01-01)\n\n- old\n", to: "CHANGELOG.md")
        try write(".build\n", to: ".gitignore")
        try write(
            """
            #!/bin/sh
            mkdir -p .build/deb
            for name in netwatch netwatch-dbgsym; do echo "$name" >.build/deb/${name}_99.0.0_amd64.deb; done
            ! [ -e .build/broken ]
            """,
            to: "bin/make"
        )
        let commit = "chmod +x scripts/release bin/make; git init -q; git add .; git commit -qm first"
        #expect(try await run("\(commit); mkdir .build").ending == .exited(0))
    }

    private func write(_ text: String, to name: String) throws {
        try directory.write(Array(text.utf8), to: name)
    }

    private func run(_ commands: String) async throws -> Subprocess.Outcome {
        let path = directory.path
        let environment = [
            "PATH": "\(path)/bin:/usr/bin:/bin", "HOME": path, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
        ]
        let shell = try Subprocess("/bin/sh", ["-euc", "cd \(path); \(commands)"], environment: environment)
        return try await shell.outcome()
    }

    /// The output of git(1) for the changes that are not committed, and the subjects of all commits.
    private func state() async throws -> [String] {
        try await run("git status --porcelain; git log --format=%s").output
    }

    @Test func `a dry run prints the changes and the text of the tag, and changes nothing`() async throws {
        let outcome = try await run("scripts/release --dry-run 99.0.0")
        #expect(outcome.ending == .exited(0), "\(outcome.errors)")
        #expect(outcome.output.contains { $0.hasPrefix("+") && $0.contains(#"current = "99.0.0""#) })
        #expect(outcome.output.contains { $0.hasPrefix("+## 99.0.0 (") })
        #expect(outcome.output.suffix(3) == ["netwatch 99.0.0", "", "- a change"])
        #expect(try await state() == ["first"])
    }

    @Test func `a release commits the version, and writes checksums and the text of the tag`() async throws {
        let outcome = try await run("scripts/release 99.0.0; cd .build/deb; sha256sum --quiet -c SHA256SUMS")
        #expect(outcome.ending == .exited(0), "\(outcome.errors)")
        #expect(try await state() == ["Release 99.0.0", "first"])
        let changelog = try await run("cat CHANGELOG.md").output
        #expect(changelog.filter { $0.hasPrefix("## ") }.count == 3)
        #expect(try await run("cat .build/deb/tag.txt").output == ["netwatch 99.0.0", "", "- a change"])
        let checksums = try await run("cut -d ' ' -f 3 .build/deb/SHA256SUMS").output
        #expect(Set(checksums) == ["./netwatch-dbgsym_99.0.0_amd64.deb", "./netwatch_99.0.0_amd64.deb"])
        #expect(try await run("scripts/release 99.0.0").ending == .exited(1), "the same version again")
    }

    @Test func `a release that fails restores the files`() async throws {
        #expect(try await run("touch .build/broken; scripts/release 99.0.0").ending != .exited(0))
        #expect(try await state() == ["first"])
    }

    @Test func `a changelog that is longer than the buffer of a pipe is accepted`() async throws {
        try write("## Unreleased\n\n" + String(repeating: "- a change\n", count: 10_000), to: "CHANGELOG.md")
        let outcome = try await run("git commit -qam second; scripts/release --dry-run 99.0.0 >/dev/null")
        #expect(outcome.ending == .exited(0), "\(outcome.errors)")
    }

    @Test func `changes that are not committed are refused`() async throws {
        let outcome = try await run("touch new; scripts/release --dry-run 99.0.0")
        #expect(outcome.ending == .exited(1) && outcome.output == [])
        #expect(outcome.errors.contains { $0.contains("not committed") })
    }

    @Test(arguments: [("1.2", 64), ("v1.2.0", 64), ("01.2.0", 64), ("1.2.0 1.3.0", 64), ("0.0.1", 1)])
    func `wrong versions are refused`(version: String, status: CInt) async throws {
        let outcome = try await run("scripts/release --dry-run \(version)")
        #expect(outcome.ending == .exited(status), "\(outcome)")
    }
}
