internal import ArgumentParser
internal import ClientCore
internal import Glibc
internal import NetwatchService

/// The options of every command that connects to the service.
struct ServiceOptions: ParsableArguments {
    @Option(help: "The control socket. Default: $NETWATCH_SOCKET, otherwise the one of `netwatch serve`.")
    var socket: ArgumentBytes?

    /// Whether the user has chosen the socket.
    var isSocketNamed: Bool { socket != nil || ServicePaths().isSocketNamed }

    /// Returns the path of the socket.
    ///
    /// - Throws: A usage error if the path is invalid for a socket or names a file that is not a socket.
    func path() throws(CommandError) -> ArgumentBytes {
        let paths = ServicePaths()
        let path = socket ?? ArgumentBytes(paths.socketForCommands.utf8)
        do {
            try SocketPath.requireSocket(path)
        } catch {
            guard socket == nil, paths.isSocketNamed else { throw error }
            throw error.with(hint: "the path is the value of `NETWATCH_SOCKET`")
        }
        return path
    }
}

/// Checks the path of a control socket before it is used.
enum SocketPath {
    /// - Throws: A usage error if the path is invalid for a unix socket (`unix(7)`).
    static func requireUsable(_ path: ArgumentBytes) throws(CommandError) {
        let length = path.bytes.count
        guard length > 0 else { throw CommandError(.usage, "the path of the socket must not be empty") }
        guard !(1...UnixSocketAddress.longestPath).contains(length) else { return }
        throw CommandError(
            .usage,
            "the path of a socket must have 1 to \(UnixSocketAddress.longestPath) bytes; "
                + "\(Printer.quoted(path.description)) has \(length)"
        )
    }

    /// - Throws: A usage error if the path is invalid for a unix socket, or names a file that is not a socket. A path
    ///   without a file is valid, because the service may create the socket later.
    static func requireSocket(_ path: ArgumentBytes) throws(CommandError) {
        try requireUsable(path)
        var status = stat()
        guard stat(path.cString, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK else { return }
        throw CommandError(.usage, "\(Printer.quoted(path.description)) is not a socket")
    }
}

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
