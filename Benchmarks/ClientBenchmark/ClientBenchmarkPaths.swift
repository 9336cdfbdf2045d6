internal import BenchmarkSupport

/// The paths and URLs of a run.
struct ClientBenchmarkPaths {
    /// The directory of the programs that measure other clients.
    private let peers: String
    /// The directory that `web.sh` serves from.
    let scratch: String

    /// The servers that `web.sh` starts.
    let small = "http://127.0.0.1/small"
    let server = "http://127.0.0.1:81"

    init(_ arguments: [String]) {
        peers = arguments[1]
        scratch = arguments[2]
    }

    func url(of body: Body) -> String { "http://127.0.0.1/\(body.rawValue)" }

    func file(of body: Body) -> String { "\(scratch)/files/\(body.rawValue)" }

    // MARK: Other clients, which may be missing

    func asyncHTTPClient(_ arguments: String) -> Series.Other {
        .program("async-http-client", "\(peers)/AsyncHTTPClientPeer \(arguments)")
    }

    /// URLSession, limited to 30 seconds because it may take minutes.
    func urlSession(_ arguments: String) -> Series.Other {
        .program("URLSession", "timeout 30 \(CommandLine.arguments[0]) measure \(arguments)")
    }

    /// - Parameter output: The file for the body.
    func curl(_ arguments: String, output: String = "/dev/null") -> Series.Other {
        .program("curl", "\(CommandLine.arguments[0]) measure curl \(arguments) --output \(output)")
    }
}

/// A file that `web.sh` creates.
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
