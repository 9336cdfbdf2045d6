internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// httpbin, a server that others wrote, on a port that the kernel chooses.
final class HTTPBin: Sendable {
    static let isInstalled =
        access(gunicorn, X_OK) == 0 && access("/usr/lib/python3/dist-packages/httpbin", F_OK) == 0

    private static let gunicorn = "/usr/bin/gunicorn"

    let url: String
    private let process: Subprocess

    init() async throws {
        process = try Subprocess(
            "/usr/bin/python3",
            [Self.gunicorn, "--bind", "127.0.0.1:0", "--threads", "4", "httpbin:app"]
        )
        let errors = process.errors
        // `[INFO] Listening at: http://127.0.0.1:PORT (PID)`
        try await errors.wait { lines in lines.contains { $0.contains("Listening at: ") } }
        let line = try #require(errors.values.first { $0.contains("Listening at: ") })
        url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
    }

    deinit { process.signal(SIGTERM) }
}

/// nginx on a unix socket, in front of a server of ours, for users whom it knows.
final class Nginx: Sendable {
    /// As scripts/find-nginx finds it.
    static let path = ["/usr/sbin/nginx", ".build/nginx/usr/sbin/nginx"]
        .first { (path: String) in access(path, X_OK) == 0 }

    let socket: String
    private let scratch: ScratchDirectory
    private let process: Subprocess

    /// - Parameter users: Names and passwords.
    init(inFrontOf server: ScriptedServer, users: [String: String]) async throws {
        let scratch = try ScratchDirectory()
        socket = scratch.file("nginx.sock")
        let passwords = users.map { "\($0.key):{PLAIN}\($0.value)\n" }.joined()
        try scratch.write(Array(passwords.utf8), to: "users")
        let configuration = """
            daemon off; master_process off; pid \(scratch.path)/pid; error_log stderr;
            events {}
            http {
                access_log off; client_max_body_size 0; client_body_temp_path \(scratch.path)/body;
                proxy_temp_path \(scratch.path)/proxy; fastcgi_temp_path \(scratch.path)/fastcgi;
                uwsgi_temp_path \(scratch.path)/uwsgi; scgi_temp_path \(scratch.path)/scgi;
                server {
                    listen unix:\(socket);
                    auth_basic "netwatch"; auth_basic_user_file \(scratch.path)/users;
                    location / { proxy_pass \(server.url); }
                }
            }
            """
        try scratch.write(Array(configuration.utf8), to: "nginx.conf")
        self.scratch = scratch
        process = try Subprocess(
            try #require(Self.path),
            ["-e", "stderr", "-p", scratch.path, "-c", scratch.file("nginx.conf")]
        )
        // Connections that come too early are refused, and nothing tells when it listens.
        while !Self.listens(socket) { try await Task.sleep(for: .milliseconds(10)) }
    }

    deinit { process.signal(SIGTERM) }

    private static func listens(_ path: String) -> Bool {
        access(path, F_OK) == 0
    }
}
