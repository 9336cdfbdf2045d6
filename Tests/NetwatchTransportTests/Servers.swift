internal import NetwatchTestSupport

extension Nginx {
    /// Starts nginx on a unix socket, as a proxy of our server that authenticates users.
    ///
    /// - Parameter users: User names and passwords.
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
    /// A server that closes the connection after its second request. On a reused connection, it is like a server whose
    /// idle timeout has just expired.
    static func closingSecondRequest(responding body: String = "") throws -> ScriptedServer {
        try ScriptedServer { $0.number == 2 ? .close : .respond(body) }
    }

    /// A server that responds to its first request, and closes the connection after each later one.
    static func respondingOnce() throws -> ScriptedServer {
        try ScriptedServer { $0.number == 1 ? .respond("") : .close }
    }
}
