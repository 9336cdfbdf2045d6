internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Bodies with a wrong length or without an end.
@Suite(.timeLimit(.minutes(5))) struct HostileFramingTests {
    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let chunked = "\(ok)Transfer-Encoding: chunked\r\n\r\n"
    private static let x16 = [UInt8](repeating: 0x78, count: 16384)

    private static func length(_ fields: String..., body: String) -> String {
        ok + fields.map { "\($0)\r\n" }.joined() + "\r\n" + body
    }

    private static var lengths: [HostileCase] {
        [
            HostileCase(
                "too long",
                .networkConnectionLost,
                18,
                status: 200,
                length("Content-Length: 10", body: "abc")
            ),
            HostileCase(
                "the largest integer",
                .networkConnectionLost,
                18,
                status: 200,
                length("Content-Length: 9223372036854775807", body: "abc")
            ),
            HostileCase("negative", .badServerResponse, 8, length("Content-Length: -5", body: "abc")),
            HostileCase("a word", .badServerResponse, 8, length("Content-Length: ten", body: "abc")),
        ]
    }

    /// Bodies that libcurl accepts although their length is ambiguous:
    ///
    /// - It ignores a length that is out of range.
    /// - It prefers chunks to any length.
    private static var tolerated: [(HostileCase, Int)] {
        [
            (HostileCase("too short", nil, nil, status: 200, length("Content-Length: 2", body: "abcdef")), 2),
            (
                HostileCase(
                    "out of range",
                    nil,
                    nil,
                    status: 200,
                    length("Content-Length: \(String(repeating: "9", count: 30))", body: "abc")
                ), 3
            ),
            (
                HostileCase(
                    "before chunks",
                    nil,
                    nil,
                    status: 200,
                    length("Content-Length: 2", "Transfer-Encoding: chunked", body: "5\r\nhello\r\n0\r\n\r\n")
                ), 5
            ),
            (
                HostileCase(
                    "after chunks",
                    nil,
                    nil,
                    status: 200,
                    length("Transfer-Encoding: chunked", "Content-Length: 2", body: "5\r\nhello\r\n0\r\n\r\n")
                ), 5
            ),
        ]
    }

    private static var chunks: [HostileCase] {
        [
            HostileCase(
                "a chunk length that is not a number",
                .badServerResponse,
                8,
                status: 200,
                "\(chunked)xyz\r\nhello\r\n0\r\n\r\n"
            ),
            HostileCase("no line", .badServerResponse, 8, status: 200, "\(chunked)\r\n\r\nhello"),
            HostileCase("a negative length", .badServerResponse, 8, status: 200, "\(chunked)-1\r\nhello"),
            HostileCase(
                "a chunk length with too many digits",
                .badServerResponse,
                8,
                status: 200,
                "\(chunked)fffffffffffffffffff\r\n"
            ),
            HostileCase(
                "a chunk longer than its length",
                .badServerResponse,
                8,
                status: 200,
                "\(chunked)5\r\nhelloX0\r\n\r\n"
            ),
            HostileCase(
                "a huge chunk",
                .networkConnectionLost,
                18,
                status: 200,
                "\(chunked)7fffffffffffffff\r\nhello"
            ),
            HostileCase(
                "endless trailers",
                .cannotParseResponse,
                100,
                status: 200,
                "\(chunked)0\r\n",
                then: .flood(Array(String(repeating: "X-A: b\r\n", count: 2048).utf8))
            ),
            HostileCase(
                "an endless trailer",
                .badServerResponse,
                8,
                status: 200,
                "\(chunked)0\r\nX: ",
                then: .flood(x16)
            ),
            HostileCase(
                "an endless chunk extension",
                .timedOut,
                28,
                status: 200,
                "\(chunked)5;",
                then: .flood(x16)
            )
            .with { $0.totalTimeout = 1000 },
        ]
    }

    @Test(arguments: lengths) func `a wrong length is an error`(hostile: HostileCase) async throws {
        try await hostile.check()
    }

    @Test(arguments: tolerated) func `an ambiguous length is interpreted as libcurl does`(
        hostile: HostileCase,
        byteCount: Int
    ) async throws {
        try await hostile.with { $0.byteCount = byteCount }.check()
    }

    @Test(arguments: chunks) func `an invalid chunk is an error and is not reported as a reset`(
        hostile: HostileCase
    ) async throws {
        try await hostile.check()
    }

    // MARK: Endless bodies

    private static var tooMuch: [HostileCase] {
        [
            HostileCase(
                "a body without an end",
                .dataLengthExceedsMaximum,
                63,
                status: 200,
                "\(ok)\r\n",
                then: .flood(x16)
            )
            .with { ($0.kind, $0.byteCount) = (.limited(16 << 20), 16 << 20) },
            HostileCase(
                "a body in pieces of one byte",
                .dataLengthExceedsMaximum,
                63,
                status: 200,
                chunked,
                then: .flood(Array(String(repeating: "1\r\nx\r\n", count: 2700).utf8))
            ).with { ($0.kind, $0.byteCount) = (.limited(100_000), 100_000) },
            HostileCase(
                "a download that is slower than its server",
                .timedOut,
                28,
                status: 200,
                "\(ok)\r\n",
                then: .flood(x16)
            )
            .with { ($0.kind, $0.totalTimeout) = (.download, 1000) },
            HostileCase(
                "a closure that is slower than its server",
                .timedOut,
                28,
                status: 200,
                "\(ok)\r\n",
                then: .flood(x16)
            )
            .with { ($0.kind, $0.totalTimeout) = (.slowStream, 1000) },
        ]
    }

    @Test(arguments: tooMuch) func `a response of any size does not exhaust memory`(
        hostile: HostileCase
    ) async throws {
        try await hostile.check()
    }
}
