internal import Glibc
internal import Testing

/// httpbin, which answers with what it was sent.
package final class HTTPBin: Sendable {
    private static let gunicorn = "/usr/bin/gunicorn"
    private static let module = "/usr/lib/python3/dist-packages/httpbin"

    private let server: ServerProcess

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    package var url: String { server.url }

    /// Skips the test that runs where httpbin, or the server that runs it, is not installed.
    package static func require() throws {
        guard access(Self.gunicorn, X_OK) == 0, access(Self.module, F_OK) == 0 else {
            try Test.cancel("needs the packages python3-httpbin and gunicorn")
        }
    }

    package init() throws {
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
