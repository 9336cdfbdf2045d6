internal import NetwatchTestSupport

extension Nginx {
    /// Starts nginx on a unix socket. It authenticates users and passes their requests to a server of this test.
    ///
    /// - Parameter users: The user names and passwords.
    convenience init(inFrontOf server: ScriptedServer, users: [String: String]) async throws {
        let scratch = try ScratchDirectory()
        let passwords = users.map { "\($0.key):{PLAIN}\($0.value)\n" }.joined()
        try scratch.write(Array(passwords.utf8), to: "users")
        try await self.init(in: scratch, on: .unix(path: scratch.file("nginx.sock"))) { _ in
            """
            server {
                listen unix:\(scratch.path)/nginx.sock;
                auth_basic "netwatch"; auth_basic_user_file \(scratch.path)/users;
                location / { proxy_pass \(server.url); }
            }
            """
        }
    }

    var socket: String { scratch.file("nginx.sock") }
}

extension ScriptedServer {
    /// Returns a server that closes the connection when it receives the second request. For a reused connection, this
    /// looks like an idle timeout of the server that has just expired.
    static func closingSecondRequest(responding body: String = "") throws -> ScriptedServer {
        try ScriptedServer { $0.number == 2 ? .close : .respond(body) }
    }

    /// Returns a server that responds to its first request. For each later request it closes the connection without a
    /// response.
    static func respondingOnce() throws -> ScriptedServer {
        try ScriptedServer { $0.number == 1 ? .respond("") : .close }
    }
}
