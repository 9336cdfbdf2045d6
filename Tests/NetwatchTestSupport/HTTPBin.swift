internal import Glibc
internal import Testing

/// An httpbin server. Its responses describe the requests that it received.
package final class HTTPBin: Sendable {
    private static let gunicorn = "/usr/bin/gunicorn"
    private static let module = "/usr/lib/python3/dist-packages/httpbin"

    private let server: ServerProcess

    /// The base URL, without a trailing slash: `http://127.0.0.1:PORT`.
    package var url: String { server.url }

    /// Skips the current test if httpbin or its server, gunicorn, is not installed.
    package static func require() throws {
        guard access(Self.gunicorn, X_OK) == 0, access(Self.module, F_OK) == 0 else {
            try Test.cancel("needs the packages python3-httpbin and gunicorn")
        }
    }

    package init() throws {
        // A gunicorn worker writes its heartbeat files to this directory.
        let scratch = try ScratchDirectory()
        server = try ServerProcess(in: scratch, on: .tcp) { _ in
            [
                "/usr/bin/python3", Self.gunicorn, "--bind", "fd://3", "--threads", "8",
                "--graceful-timeout", "1", "--worker-tmp-dir", scratch.path, "httpbin:app",
            ]
        }
    }
}
