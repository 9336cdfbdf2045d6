internal import BenchmarkSupport

/// The paths of a run, the URLs of the servers that `web.sh` starts, and the other clients.
struct ClientBenchmarkPaths {
    /// The directory of the programs that measure other clients.
    private let peers: String
    /// The directory with the files of nginx.
    let scratch: String

    /// The URL of a small body, from nginx.
    let small = "http://127.0.0.1/small"
    /// The URL of the floor's server (`Floors/server.c`).
    let server = "http://127.0.0.1:81"

    /// - Parameter arguments: The arguments of `run`.
    init(_ arguments: [String]) {
        peers = arguments[1]
        scratch = arguments[2]
    }

    /// Returns the URL of a large body, from nginx.
    func url(of body: Body) -> String { "http://127.0.0.1/\(body.rawValue)" }

    /// Returns the path of the file with a large body.
    func file(of body: Body) -> String { "\(scratch)/files/\(body.rawValue)" }

    // MARK: Other clients, which may be missing

    /// async-http-client, measured by the separate package `Peers`.
    func asyncHTTPClient(_ arguments: String) -> Series.Other {
        .program("async-http-client", "\(peers)/AsyncHTTPClientPeer \(arguments)")
    }

    /// Foundation's `URLSession`. A round ends after 30 seconds, because it may take minutes.
    func urlSession(_ arguments: String) -> Series.Other {
        .program("URLSession", "timeout 30 \(CommandLine.arguments[0]) measure \(arguments)")
    }

    /// The command line tool curl.
    ///
    /// - Parameters:
    ///   - arguments: The arguments of ``CurlTool``.
    ///   - output: The file for the body.
    func curl(_ arguments: String, output: String = "/dev/null") -> Series.Other {
        .program("curl", "\(CommandLine.arguments[0]) measure curl \(arguments) --output \(output)")
    }
}

/// A large file that `web.sh` creates and nginx serves.
enum Body: String {
    case large
    case moderate

    var mebibytes: Int {
        switch self {
        case .large: 1024
        case .moderate: 64
        }
    }

    var bytes: Int { mebibytes << 20 }
}
