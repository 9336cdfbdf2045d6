internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A server that others wrote, on a port that no other program can take.
///
/// It ends with the last reference to it, and with the tests' process, however that ends: a shell beside it
/// waits for the end of a pipe whose other end only the tests hold.
package final class ServerProcess: Sendable {
    /// How a server comes to its port.
    package enum Port {
        /// It is given a socket that listens already, as descriptor 3.
        case given
        /// It binds a socket to it. Nobody else does: a socket of ours is bound to it, but does not listen.
        case reserved
        /// It has none.
        case none
    }

    /// The port it listens on at 127.0.0.1; 0 for none.
    package let port: UInt16
    package let process: Subprocess
    private let scratch: ScratchDirectory
    private let lifeline: FileDescriptor
    private let reservation: FileDescriptor?

    /// `TERM` to the shell's child only: the shell has to stay for the cleaning. It becomes deaf after the child was
    /// made, which would inherit that: a program that has no handler of its own would stay for ever.
    private static let keeper = """
        directory=$1; shift
        "$@" & exec 3<&-
        trap '' INT TERM HUP
        read -r _
        kill $!; wait; rm -rf "$directory"
        """

    /// - Parameters:
    ///   - scratch: Where it keeps its files; removed after its end.
    ///   - command: The program and its arguments, from the port.
    package init(
        in scratch: ScratchDirectory,
        on port: Port,
        _ command: (UInt16) throws -> [String]
    ) throws {
        var ends: [CInt] = [0, 0]
        try systemCall("pipe2") { pipe2(&ends, O_CLOEXEC) }
        lifeline = FileDescriptor(owning: ends[1])
        let input = FileDescriptor(owning: ends[0])
        let socket = try Self.socket(for: port)
        self.port = socket?.port ?? 0
        self.scratch = scratch
        process = try Subprocess(
            "/bin/sh",
            ["-c", Self.keeper, "sh", scratch.path] + command(self.port),
            input: input.rawValue,
            passing: port == .given ? socket?.descriptor : nil
        )
        let kept = socket.map { FileDescriptor(owning: $0.descriptor) }
        reservation = port == .reserved ? kept : nil
    }

    private static func socket(for port: Port) throws -> (descriptor: CInt, port: UInt16)? {
        switch port {
        case .given: try ListeningSocket.tcp()
        case .reserved: try ListeningSocket.tcp(backlog: nil, isShared: true)
        case .none: nil
        }
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    package var url: String { "http://127.0.0.1:\(port)" }
}

/// A server that the tests need is not installed.
package struct MissingServer: Error, CustomStringConvertible {
    package let description: String
}
