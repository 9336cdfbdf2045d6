internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The scripts of the Debian package, in a mount namespace. `scripts/check-deb` tests the package itself.
@Suite(.timeLimit(.minutes(1))) struct PackageScriptTests {
    private let directory = try! ScratchDirectory()

    /// Runs `postrm purge` on file systems that hide the machine's, without the programs that change its units.
    ///
    /// - Parameter preparation: The commands that create the files to remove.
    /// - Returns: The lines of all outputs, the exit status, and the files that remain.
    private func purge(after preparation: String) throws -> [String] {
        let script = """
            mkdir \(directory.file("bin"))
            for name in rm rmdir find; do ln -s "$(command -v $name)" \(directory.file("bin")); done
            cp \(Repository.path("packaging/debian/postrm")) \(directory.file("postrm"))
            for path in /etc /run /var/lib; do mount -t tmpfs none $path; done
            mkdir -p /var/lib/netwatch /etc/netwatch/netwatch.toml.d
            \(preparation)
            PATH=\(directory.file("bin")) /bin/sh \(directory.file("postrm")) purge 2>&1
            echo "status $?"
            find /var/lib /etc -mindepth 1 | sort
            """
        try directory.write(Array(script.utf8), to: "run")
        let output = try VethTestbed().near.shell("unshare -m sh \(directory.file("run"))")
        return output.split(separator: "\n").map(String.init)
    }

    @Test func `a purge deletes the content of a state directory that is a mount point`() throws {
        let output = try purge(
            after: """
                mount -t tmpfs none /var/lib/netwatch
                mkdir /var/lib/netwatch/spool
                touch /var/lib/netwatch/queue.sqlite /var/lib/netwatch/spool/a /etc/netwatch/netwatch.toml.d/a.toml
                """
        )
        #expect(
            output == [
                "netwatch: the mount point /var/lib/netwatch remains, and is empty", "status 0",
                "/var/lib/netwatch",
            ]
        )
    }

    @Test func `a purge that cannot delete the requests prints why, and fails`() throws {
        let output = try purge(
            after: """
                mount -t tmpfs none /var/lib/netwatch
                touch /var/lib/netwatch/queue.sqlite
                mount -o remount,ro /var/lib/netwatch
                """
        )
        #expect(output.first?.contains("queue.sqlite") == true && output.contains("status 1"), "\(output)")
        #expect(output.contains("/var/lib/netwatch/queue.sqlite"), "\(output)")
    }
}
