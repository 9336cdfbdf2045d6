internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A third-party server process. It inherits a listening socket, so clients need not wait for its start.
///
/// It ends with the last reference, and with the tests' process, however that ends: a shell waits for the end of a pipe
/// whose writing end only the tests hold.
package final class ServerProcess: Sendable {
    /// The socket that a server inherits as descriptor 3.
    package enum Listener {
        /// A TCP socket on a free port of an address, in a namespace or in that of the tests.
        case address(String, in: NetworkNamespace?)
        /// A unix socket at a path.
        case unix(path: String)
        case none

        /// A TCP socket on a free port of 127.0.0.1.
        package static let tcp = Listener.address("127.0.0.1", in: nil)
    }

    /// The TCP port; 0 without a TCP socket.
    package let port: UInt16
    package let process: Subprocess
    private let scratch: ScratchDirectory
    private let lifeline: FileDescriptor

    /// A shell script that kills the server and the processes it has started, which share its session. `TERM` is not
    /// enough: nginx ignores it during its start. The server is killed by its process id too, because it may not have
    /// its session yet.
    private static let keeper = """
        directory=$1; shift
        setsid "$@" & exec 3<&-
        trap '' INT TERM HUP
        read -r _
        kill -s KILL $! -$!; wait; rm -rf "$directory"
        """

    /// - Parameters:
    ///   - scratch: The directory for the server's files. It is removed after the server's end.
    ///   - listener: The socket to listen on.
    ///   - command: Returns the program and its arguments for a port.
    package init(
        in scratch: ScratchDirectory,
        on listener: Listener,
        _ command: (UInt16) throws -> [String]
    ) throws {
        var ends: [CInt] = [0, 0]
        try systemCall("pipe2") { pipe2(&ends, O_CLOEXEC) }
        lifeline = FileDescriptor(owning: ends[1])
        let input = FileDescriptor(owning: ends[0])
        let socket = try Self.socket(for: listener)
        // Only the server keeps the socket, so connections are refused after its end.
        defer { if let socket { close(socket.descriptor) } }
        port = socket?.port ?? 0
        self.scratch = scratch
        process = try Subprocess(
            "/bin/sh",
            ["-c", Self.keeper, "sh", scratch.path] + command(port),
            input: input.rawValue,
            passing: socket?.descriptor
        )
    }

    private static func socket(for listener: Listener) throws -> (descriptor: CInt, port: UInt16)? {
        switch listener {
        case .address(let address, in: nil): try ListeningSocket.tcp(address)
        case .address(let address, in: let namespace?):
            try namespace.run { Result { try ListeningSocket.tcp(address) } }.get()
        case .unix(let path): (try ListeningSocket.unix(path), 0)
        case .none: nil
        }
    }

    /// The URL without a trailing slash: `http://127.0.0.1:PORT`.
    package var url: String { "http://127.0.0.1:\(port)" }
}
