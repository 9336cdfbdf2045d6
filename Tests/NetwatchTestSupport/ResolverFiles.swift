/// The resolver's configuration files for one program: `resolv.conf(5)`, `hosts(5)` and `nsswitch.conf(5)`. Other
/// programs see the machine's own files.
package final class ResolverFiles: Sendable {
    private let directory: ScratchDirectory

    /// - Parameters:
    ///   - configuration: The content of `resolv.conf`. Default: the server at the far end of a ``VethTestbed``, which
    ///     is queried once with a timeout of 30 s, the maximum of the C library (`RES_MAXRETRANS` of <resolv.h>).
    ///   - hosts: The content of `hosts`. Default: empty.
    package init(
        _ configuration: String = "nameserver \(VethTestbed.farAddress)\noptions timeout:30 attempts:1\n",
        hosts: String = ""
    ) throws {
        directory = try ScratchDirectory()
        try directory.write(Array(configuration.utf8), to: "resolv.conf")
        try directory.write(Array(hosts.utf8), to: "hosts")
        try directory.write(Array("hosts: files dns\n".utf8), to: "nsswitch.conf")
    }

    package func path(of name: String) -> String { directory.file(name) }

    /// Returns a command that mounts these files over the machine's own in a new mount namespace. Then it executes the
    /// given command in the same process.
    package func mounted(_ command: [String]) -> [String] {
        let mounts = ["resolv.conf", "hosts", "nsswitch.conf"].map {
            "mount --bind \(directory.file($0)) /etc/\($0) && "
        }
        return ["/usr/bin/unshare", "-m", "/bin/sh", "-c", "\(mounts.joined())exec \"$@\"", "sh"] + command
    }

    /// Retains the files until a program ends. Releasing the last reference would remove them, possibly before the
    /// program has mounted them.
    package func keep(until process: Subprocess) {
        Task {
            _ = try? await process.end()
            withExtendedLifetime(self) {}
        }
    }
}
