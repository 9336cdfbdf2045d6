internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A server that others wrote. It is given a socket that already listens, so clients need not wait for it.
///
/// It ends with the last reference to it, and with the tests' process, however that ends: a shell beside it
/// waits for the end of a pipe whose other end only the tests hold.
package final class ServerProcess: Sendable {
    /// The socket that a server inherits as descriptor 3.
    package enum Listener {
        /// A TCP socket on a free port of 127.0.0.1.
        case tcp
        /// A unix socket at a path.
        case unix(path: String)
        case none
    }

    /// The port it listens on at 127.0.0.1; 0 without a TCP socket.
    package let port: UInt16
    package let process: Subprocess
    private let scratch: ScratchDirectory
    private let lifeline: FileDescriptor

    /// Kills the server and the processes it has started, which share its session. `TERM` would not do: nginx misses
    /// one that comes while it starts. The server itself is named as well, as it may not have its session yet.
    private static let keeper = """
        directory=$1; shift
        setsid "$@" & exec 3<&-
        trap '' INT TERM HUP
        read -r _
        kill -s KILL $! -$!; wait; rm -rf "$directory"
        """

    /// - Parameters:
    ///   - scratch: Where it keeps its files; removed after its end.
    ///   - listener: Where it listens.
    ///   - command: The program and its arguments, from the port.
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
        // Only the server keeps the socket: connections are refused once it has ended.
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
        case .tcp: try ListeningSocket.tcp()
        case .unix(let path): (try ListeningSocket.unix(path), 0)
        case .none: nil
        }
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    package var url: String { "http://127.0.0.1:\(port)" }
}
