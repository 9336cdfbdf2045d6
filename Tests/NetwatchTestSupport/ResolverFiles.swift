/// The resolver's configuration files for one program: `resolv.conf(5)`, `hosts(5)` and `nsswitch.conf(5)`; optionally
/// also the file of the certificate authorities that the program trusts. Other programs see the machine's own files.
package final class ResolverFiles: Sendable {
    /// The file of the machine's certificate authorities. `ca-certificates` installs it.
    package static let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

    private let directory: ScratchDirectory
    /// The file of the authorities that the program trusts; `nil` for the machine's own.
    private let authorities: String?

    /// - Parameters:
    ///   - configuration: The content of `resolv.conf`. Default: the server at the far end of a ``VethTestbed``, which
    ///     is queried once with a timeout of 30 s, the maximum of the C library (`RES_MAXRETRANS` of <resolv.h>).
    ///   - hosts: The content of `hosts`. Default: empty.
    ///   - authorities: The path of a file in PEM with the authorities that the program trusts. Default: `nil`, the
    ///     machine's own.
    package init(
        _ configuration: String = "nameserver \(VethTestbed.farAddress)\noptions timeout:30 attempts:1\n",
        hosts: String = "",
        authorities: String? = nil
    ) throws {
        self.authorities = authorities
        directory = try ScratchDirectory()
        try directory.write(Array(configuration.utf8), to: "resolv.conf")
        try directory.write(Array(hosts.utf8), to: "hosts")
        try directory.write(Array("hosts: files dns\n".utf8), to: "nsswitch.conf")
    }

    package func path(of name: String) -> String { directory.file(name) }

    /// Returns a command that mounts these files over the machine's own in a new mount namespace. Then it executes the
    /// given command in the same process.
    package func mounted(_ command: [String]) -> [String] {
        let resolving = ["resolv.conf", "hosts", "nsswitch.conf"].map { (directory.file($0), "/etc/\($0)") }
        let trust = authorities.map { [($0, Self.systemAuthorities)] } ?? []
        let mounts = (resolving + trust).map { "mount --bind \($0) \($1) && " }
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
