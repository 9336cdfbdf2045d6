internal import Glibc

/// The systemd unit of the system's service.
enum SystemUnit {
    static let name = "netwatch.service"
    /// The directories of the units of packages and of the administrator.
    private static let directories = ["/usr/lib/systemd/system", "/etc/systemd/system"]

    static let isInstalled = exists(in: directories)

    static func exists(in directories: [String]) -> Bool {
        directories.contains { access("\($0)/\(name)", F_OK) == 0 }
    }

    /// What to do if the service does not run.
    static let startHint = hint(isInstalled: isInstalled)

    static func hint(isInstalled: Bool) -> String {
        "`\(isInstalled ? "systemctl start netwatch" : "netwatch serve")` starts the service"
    }
}
