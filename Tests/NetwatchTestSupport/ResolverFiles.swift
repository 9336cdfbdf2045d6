/// The files of `resolv.conf(5)` and `hosts(5)` that one program sees, and nobody else.
package final class ResolverFiles: Sendable {
    private let directory: ScratchDirectory

    /// - Parameters:
    ///   - configuration: The content of `resolv.conf`; by default a server that is asked once and waited for as long
    ///     as the C library allows (30 s, `RES_MAXRETRANS` of <resolv.h>).
    ///   - hosts: The content of `hosts`.
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

    /// A command that runs another one, in the same process, with these files mounted over the machine's.
    package func mounted(_ command: [String]) -> [String] {
        let mounts = ["resolv.conf", "hosts", "nsswitch.conf"].map {
            "mount --bind \(directory.file($0)) /etc/\($0) && "
        }
        return ["/usr/bin/unshare", "-m", "/bin/sh", "-c", "\(mounts.joined())exec \"$@\"", "sh"] + command
    }

    /// The files are mounted some time after the program was started, and go away with the last reference.
    package func keep(until process: Subprocess) {
        Task {
            _ = try? await process.end()
            withExtendedLifetime(self) {}
        }
    }
}
