import Foundation
import NetwatchTestSupport

// Third-party servers, each shared by all tests of the process.

extension HTTPBin {
    private static let only = Result { try HTTPBin() }

    /// Returns the shared httpbin server, whose process ends with the tests.
    static func shared() async throws -> HTTPBin {
        try require()
        return try only.get()
    }
}

extension Nginx {
    private static let only = Task {
        let scratch = try ScratchDirectory()
        try scratch.write(Array("user:{PLAIN}password\n".utf8), to: "users")
        let root = URL(fileURLWithPath: scratch.file("root"))
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: false)
        return try await Nginx(in: scratch) { guideServer(port: $0, scratch.path) }
    }

    /// Returns the shared nginx server, whose process ends with the tests.
    ///
    /// The server serves the files in ``root``, with `ETag`, `Last-Modified` and ranges. It also serves the same files
    /// below these paths:
    /// - `/gzip/`: compressed, if the name ends in `.txt` or `.json`
    /// - `/basic/`: for the user `user` with the password `password`
    /// - `/redirect/`: as redirects
    ///
    /// A `PUT` to a path below `/put/` creates a file.
    static func shared() async throws -> Nginx {
        try await require()
        return try await only.value
    }

    /// The directory that is served. Tests write their own files into it.
    var root: URL { URL(fileURLWithPath: scratch.file("root")) }

    private static func guideServer(port: UInt16, _ directory: String) -> String {
        """
        types { text/plain txt; application/json json; text/html html; image/png png; }
        default_type application/octet-stream;
        server {
            listen 127.0.0.1:\(port);
            root \(directory)/root;
            location /gzip/ {
                alias \(directory)/root/; gzip on; gzip_types text/plain application/json; gzip_min_length 1;
            }
            location /basic/ {
                alias \(directory)/root/; auth_basic "netwatch"; auth_basic_user_file \(directory)/users;
            }
            location /redirect/ { rewrite ^/redirect/(.*)$ /$1 redirect; }
            location /put/ { dav_methods PUT DELETE; create_full_put_path on; }
        }
        """
    }
}
