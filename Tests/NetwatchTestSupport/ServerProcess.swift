internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A third-party server process. It inherits a listening socket, so clients can connect before the server is ready.
///
/// The server is killed when the last reference is released, and also when the tests' process ends, even by a crash. A
/// shell sees to that: it reads from a pipe whose writing end only the tests hold, and kills the server when the pipe
/// is closed.
package final class ServerProcess: Sendable {
    /// The socket that a server inherits as descriptor 3.
    package enum Listener {
        /// A TCP socket on a free port of an address. With `nil`, the address is in the tests' own network namespace.
        case address(String, in: NetworkNamespace?)
        /// A unix socket at a path.
        case unix(path: String)
        /// No socket: the server opens its own, or needs none.
        case none

        /// A TCP socket on a free port of 127.0.0.1.
        package static let tcp = Listener.address("127.0.0.1", in: nil)
    }

    /// The port of the inherited TCP socket; 0 if there is none.
    package let port: UInt16
    package let process: Subprocess
    private let scratch: ScratchDirectory
    private let lifeline: FileDescriptor

    /// A shell script that starts the server, waits for the end of its standard input, and kills the server.
    ///
    /// It also kills the processes that the server has started, which are in the same process group. It sends `KILL`,
    /// because nginx ignores `TERM` during its start. It also kills the server by its process ID, because the server
    /// may not have its own group yet.
    private static let keeper = """
        directory=$1; shift
        setsid "$@" & exec 3<&-
        trap '' INT TERM HUP
        read -r _
        kill -s KILL $! -$!; wait; rm -rf "$directory"
        """

    /// - Parameters:
    ///   - scratch: The directory for the server's files. It is removed after the server has ended.
    ///   - listener: The socket that the server inherits.
    ///   - command: Returns the path of the program and its arguments. Receives the port.
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
        // Only the server keeps the socket. So connections are refused when the server has ended.
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

    /// The base URL, without a trailing slash: `http://127.0.0.1:PORT`.
    package var url: String { "http://127.0.0.1:\(port)" }
}
