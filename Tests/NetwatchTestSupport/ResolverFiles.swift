/// Files for `resolv.conf(5)` and `hosts(5)` that only one program sees.
package final class ResolverFiles: Sendable {
    private let directory: ScratchDirectory

    /// - Parameters:
    ///   - configuration: The content of `resolv.conf`. By default: a server that is queried once, with the longest
    ///     timeout that the C library allows (30 s, `RES_MAXRETRANS` of <resolv.h>).
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

    /// Returns a command that mounts these files over the machine's and then runs another command in the same process.
    package func mounted(_ command: [String]) -> [String] {
        let mounts = ["resolv.conf", "hosts", "nsswitch.conf"].map {
            "mount --bind \(directory.file($0)) /etc/\($0) && "
        }
        return ["/usr/bin/unshare", "-m", "/bin/sh", "-c", "\(mounts.joined())exec \"$@\"", "sh"] + command
    }

    /// Retains the files until a program ends. It mounts them some time after its start, and they are removed with the
    /// last reference.
    package func keep(until process: Subprocess) {
        Task {
            _ = try? await process.end()
            withExtendedLifetime(self) {}
        }
    }
}
