internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Returns the path to 127.0.0.1.
func loopbackPath() throws -> NetworkPath {
    let host = try #require(NetworkHost("127.0.0.1"))
    return try #require(PathMonitor.shared.watch(.host(host)) { _ in }.status.path)
}

extension TransferEngine {
    /// Creates an engine that resolves every name to loopback.
    static func withLoopbackNames() throws -> TransferEngine {
        try TransferEngine(resolver: NameResolver { _ in .success([IPAddress("127.0.0.1")!]) })
    }
}

/// An endless response of a server, and the message with which a probe of the server fails.
struct EndlessAnswer: CustomTestStringConvertible {
    let testDescription: String
    let script: ScriptedServer.Script
    let words: String

    /// The timeout of the probe. It must not expire before the connection is made, nor before a response exceeds a size
    /// limit, even on a busy machine.
    var timeout: Duration { words.contains("bytes") ? .seconds(60) : .seconds(10) }

    private static let okay = "HTTP/1.1 200 OK\r\nContent-Type: application/captive+json\r\n"

    /// Responses whose head or body never ends. The messages apply to ``timeout``.
    static let all = [
        EndlessAnswer(
            testDescription: "endless header fields",
            script: { _ in .endlessHeaders },
            words: "the response head is longer than 262144 bytes"
        ),
        EndlessAnswer(
            testDescription: "nothing at all",
            script: { _ in .stall(then: .close) },
            words: "no complete response within 10.0 seconds"
        ),
        EndlessAnswer(
            testDescription: "half a head",
            script: { _ in .send(okay, then: .stall(then: .close)) },
            words: "no complete response within 10.0 seconds"
        ),
        EndlessAnswer(
            testDescription: "endless interim responses",
            script: { _ in
                let interim = String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 20_000)
                return .send(interim, then: .stall(then: .close))
            },
            words: "the response head is longer than 262144 bytes"
        ),
    ]
}
