internal import ClientCore
internal import Glibc
internal import NetwatchService

/// The systemd unit of the system's service.
enum SystemUnit {
    static let name = "netwatch.service"
    /// The directories of the units of packages and of the administrator.
    private static let directories = ["/usr/lib/systemd/system", "/etc/systemd/system"]

    static let isInstalled = exists(in: directories)

    static func exists(in directories: [String]) -> Bool {
        directories.contains { access("\($0)/\(name)", F_OK) == 0 }
    }

    /// Returns how to start the service that listens on a socket. The unit is proposed only for its own socket.
    ///
    /// - Parameters:
    ///   - isInstalled: Whether the unit is installed. Default: whether it is on this machine.
    ///   - paths: The default paths. Default: those of this process.
    static func startHint(
        socket: ArgumentBytes,
        isInstalled: Bool = Self.isInstalled,
        paths: ServicePaths = ServicePaths()
    ) -> String {
        if isInstalled, socket.text == ServicePaths.systemSocket { return hint(unitCommand) }
        let isDefault = [paths.socket, paths.socketForCommands].contains(socket.text)
        return hint(isDefault ? serveCommand : "\(serveCommand) --socket \(Shell.quoted(socket.description))")
    }

    /// Returns how to start the service that uses a queue's directory. The unit is proposed only for its own directory.
    ///
    /// - Parameters:
    ///   - isInstalled: Whether the unit is installed. Default: whether it is on this machine.
    ///   - paths: The default paths. Default: those of this process.
    static func startHint(
        stateDirectory path: String,
        isInstalled: Bool = Self.isInstalled,
        paths: ServicePaths = ServicePaths()
    ) -> String {
        if isInstalled, path == ServicePaths.systemState { return hint(unitCommand) }
        let isDefault = path == paths.stateDirectory
        return hint(isDefault ? serveCommand : "\(serveCommand) --state-dir \(Shell.quoted(path))")
    }

    private static let unitCommand = "systemctl start netwatch"
    private static let serveCommand = "netwatch serve"

    private static func hint(_ command: String) -> String { "`\(command)` starts the service" }
}
