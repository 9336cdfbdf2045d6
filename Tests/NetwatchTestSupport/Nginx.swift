internal import Glibc

/// An nginx server with one worker process.
package final class Nginx: Sendable {
    package let scratch: ScratchDirectory
    private let server: ServerProcess

    /// The base URL, without a trailing slash: `http://127.0.0.1:PORT`. Meaningless if nginx listens on a unix socket.
    package var url: String { server.url }

    /// Starts nginx. Skips the current test if nginx is not installed.
    ///
    /// - Parameters:
    ///   - scratch: The directory for nginx's files.
    ///   - listener: The socket to listen on. The configuration must contain a `listen` directive with the same
    ///     address, because nginx finds an inherited socket by its address.
    ///   - configuration: Returns the contents of the `http` block. Receives the port.
    package init(
        in scratch: ScratchDirectory,
        on listener: ServerProcess.Listener = .tcp,
        _ configuration: (UInt16) -> String
    ) async throws {
        let path = try await TestProgram.path("nginx")
        self.scratch = scratch
        server = try ServerProcess(in: scratch, on: listener) { port in
            let text = Self.text(configuration(port), in: scratch.path)
            let file = try scratch.write(Array(text.utf8), to: "nginx.conf")
            // nginx itself uses this variable to pass its sockets to its new process during an upgrade.
            return ["/usr/bin/env", "NGINX=3;", path, "-e", "stderr", "-p", scratch.path, "-c", file]
        }
    }

    /// Skips the current test if nginx is not installed.
    package static func require() async throws { _ = try await TestProgram.path("nginx") }

    /// The `user` directive if the tests run as root; otherwise empty.
    ///
    /// Without it, nginx as root would change the owner of its directories to `nobody`. That user does not exist in a
    /// user namespace with a single user.
    private static var user: String { geteuid() == 0 ? "user root root;" : "" }

    /// Returns the configuration file. It does not turn the master process off, because without one nginx 1.22 crashes
    /// when it inherits sockets.
    private static func text(_ http: String, in directory: String) -> String {
        """
        daemon off; pid \(directory)/pid; error_log stderr; \(user)
        events {}
        http {
            access_log off; client_max_body_size 0; client_body_temp_path \(directory)/body;
            proxy_temp_path \(directory)/proxy; fastcgi_temp_path \(directory)/fastcgi;
            uwsgi_temp_path \(directory)/uwsgi; scgi_temp_path \(directory)/scgi;
            \(http)
        }
        """
    }
}
