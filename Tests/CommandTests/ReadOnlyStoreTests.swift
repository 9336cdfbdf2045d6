internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A queue on a read-only file system.
@Suite(.timeLimit(.minutes(5))) struct ReadOnlyStoreTests {
    private let disk = try! ScratchDirectory()

    /// Runs a command with a copy of a queue's directory on a read-only file system.
    ///
    /// - Parameter preparation: A shell command that runs before the file system becomes read-only.
    /// - Returns: The output, and `status N` as its last line.
    private func run(_ command: String, preparation: String = ":") async throws -> String {
        let queue = try await QueueFixture(.directory, count: 1)
        let script = queue.directory.file("script")
        try Data(
            """
            mount -t tmpfs none \(disk.path)
            chmod 755 \(disk.path)
            cp -a \(queue.directory.file("state")) \(disk.path)/state
            \(preparation)
            mount -o remount,ro \(disk.path)
            \(Command.path) \(command) --socket \(queue.directory.file("other"))
            echo status $?
            """.utf8
        ).write(to: URL(filePath: script))
        return try withExtendedLifetime(queue) {
            try VethTestbed().near.shell("unshare -m sh \(script)")
        }
    }

    @Test(arguments: ["serve", "queue list", "queue verify"])
    func `the error names the file and the read-only file system`(command: String) async throws {
        let output = try await run("\(command) --state-dir \(disk.path)/state")
        #expect(output.contains("open \(disk.path)/state/queue.lock: Read-only file system\n"), "\(output)")
        #expect(output.hasSuffix("status 2\n"), "\(output)")
    }

    @Test func `a missing directory is not created on a read-only file system`() async throws {
        let output = try await run("serve --state-dir \(disk.path)/new")
        #expect(output.contains("mkdir \(disk.path)/new: Read-only file system\n"), "\(output)")
        #expect(output.hasSuffix("status 2\n"), "\(output)")
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "only root can change the owner of a file"))
    func `root gets the same error for the queue of another user`() async throws {
        let output = try await run(
            "queue list --state-dir \(disk.path)/state",
            preparation: "chown -R 65534:65533 \(disk.path)/state"
        )
        let message = "could not open the queue in `\(disk.path)/state`: Read-only file system\n"
        #expect(output.contains(message) && output.hasSuffix("status 2\n"), "\(output)")
    }
}
