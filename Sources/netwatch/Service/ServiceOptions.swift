internal import ArgumentParser
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
