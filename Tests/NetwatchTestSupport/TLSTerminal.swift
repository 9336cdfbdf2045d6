internal import Glibc
internal import NetwatchEventLoop

/// A TLS server that sends what a test writes, based on openssl-s_server(1). It serves one connection at a time, and
/// speaks no protocol over TLS. Releasing the last reference ends it.
package final class TLSTerminal: Sendable {
    package let port: UInt16
    private let program: Subprocess
    private let input: FileDescriptor

    /// Starts a server, and waits until it accepts connections.
    ///
    /// - Parameters:
    ///   - authority: The authority that has issued the server's certificate with its intermediate.
    ///   - certificate: The certificate of the server.
    ///   - port: The port on 127.0.0.1. Default: 0, the kernel chooses a free one.
    ///   - namespace: The network namespace of the port. Default: `nil`, the tests' own.
    ///   - options: More arguments of openssl-s_server(1). Default: none.
    package init(
        _ authority: TestAuthority,
        _ certificate: TestAuthority.Issued,
        port: UInt16 = 0,
        in namespace: NetworkNamespace? = nil,
        options: [String] = []
    ) async throws {
        var ends: [CInt] = [0, 0]
        // Not a pipe, because a write to a pipe raises SIGPIPE if the program has ended.
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
        input = FileDescriptor(owning: ends[1])
        let output = FileDescriptor(owning: ends[0])
        let program = try Subprocess(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-key", certificate.key,
                "-cert", certificate.certificate, "-cert_chain", authority.intermediate,
            ] + options,
            input: output.rawValue,
            in: namespace
        )
        do {
            try await program.output.wait { $0.contains { $0.hasPrefix("ACCEPT") } }
        } catch {
            program.signal(SIGKILL)
            throw error
        }
        self.program = program
        self.port = port == 0 ? Self.port(of: program) : port
    }

    deinit { program.signal(SIGKILL) }

    /// Returns the port from the line `ACCEPT ADDRESS:PORT`, which the program writes if the kernel chooses the port.
    private static func port(of program: Subprocess) -> UInt16 {
        let line = program.output.values.first { $0.hasPrefix("ACCEPT ") }
        return line?.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
    }

    /// Sends a text to the client of the current connection, in one TLS record. There must be a connection.
    ///
    /// - Parameter text: At most 16,384 bytes. Its first letter must not be a command of openssl-s_server(1).
    package func send(_ text: String) throws {
        let (descriptor, bytes) = (input.rawValue, Array(text.utf8))
        try systemCall("send") { Glibc.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) }
    }

    /// Waits until a client has sent a line, which is given without its line break.
    package func received(_ line: String) async throws {
        // For Swift, "\r\n" is one character, so the recorded lines still have it.
        try await program.output.wait { $0.contains { [line, line + "\r", line + "\r\n"].contains($0) } }
    }

    /// Waits until clients have sent at least `count` request lines.
    package func requests(atLeast count: Int) async throws {
        try await program.output.wait { $0.filter { $0.contains(" HTTP/1.1") }.count >= count }
    }

    /// Waits until at least `count` connections have ended.
    package func endedConnections(atLeast count: Int) async throws {
        // The program writes one of these lines when it has read the end of a connection.
        try await program.output.wait { $0.filter { ["DONE", "ERROR"].contains($0) }.count >= count }
    }
}
