internal import Glibc

/// httpbin, which answers with what it was sent.
package final class HTTPBin: Sendable {
    private static let gunicorn = "/usr/bin/gunicorn"
    private static let module = "/usr/lib/python3/dist-packages/httpbin"

    private let server: ServerProcess

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    package var url: String { server.url }

    /// - Throws: ``MissingServer`` where httpbin or what runs it is not installed.
    package init() throws {
        guard access(Self.gunicorn, X_OK) == 0, access(Self.module, F_OK) == 0 else {
            throw MissingServer(
                description: "httpbin is missing: apt-get install python3-httpbin gunicorn"
            )
        }
        // Its worker writes its signs of life into files of that directory.
        let scratch = try ScratchDirectory()
        server = try ServerProcess(in: scratch, on: .tcp) { _ in
            [
                "/usr/bin/python3", Self.gunicorn, "--bind", "fd://3", "--threads", "8",
                "--graceful-timeout", "1", "--worker-tmp-dir", scratch.path, "httpbin:app",
            ]
        }
    }
}
