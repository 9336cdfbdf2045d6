internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Response heads that are truncated, endless, slow or not HTTP.
@Suite(.timeLimit(.minutes(5))) struct HostileHeadTests {
    /// A response with every element that a chunked response can have.
    private static let response =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: 1\r\n\r\n"

    @Test(arguments: [true, false])
    func `a response truncated at any byte is an error, and the complete response is not`(isReset: Bool)
        async throws
    {
        let bytes = Array(Self.response.utf8)
        let server = try HostileServer { request in
            let count = request.target.split(separator: "/").last.flatMap { Int($0) } ?? 0
            return .send(Array(bytes.prefix(count)), then: isReset ? .reset : .close)
        }
        var options = server.options
        options.count = bytes.count + 1
        let report = try await server.run(options)
        #expect(report.outcomes.count == bytes.count + 1)
        // Without its last byte, a line feed, the response still counts as complete if the connection is closed
        // cleanly.
        for (count, outcome) in report.outcomes.enumerated() where count < bytes.count - 1 {
            #expect(
                outcome.error == "URLError \(URLError.Code.networkConnectionLost.rawValue)",
                "at \(count): \(outcome)"
            )
            #expect(outcome.transferCode == (isReset ? 56 : count < 17 ? 52 : 18), "at \(count): \(outcome)")
            #expect(outcome.phase == "response")
        }
        #expect(report.outcomes.last?.error == nil)
        #expect(report.outcomes.last?.byteCount == 11)
        report.checkProcess()
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let head = "\(ok)Content-Length: 2\r\n"
    private static let x16 = [UInt8](repeating: 0x78, count: 16384)

    private static func flood(_ line: String) -> ScriptedServer.Action {
        .flood(Array(String(repeating: line, count: 16384 / line.utf8.count).utf8))
    }

    private static var tooLong: [HostileCase] {
        [
            HostileCase("endless fields", .cannotParseResponse, 100, ok, then: flood("X-A: b\r\n")),
            HostileCase("an endless field", .cannotParseResponse, 100, "\(ok)X: ", then: .flood(x16)),
            HostileCase("an endless name", .cannotParseResponse, 100, ok, then: .flood(x16)),
            HostileCase(
                "an endless status line",
                .cannotParseResponse,
                100,
                "HTTP/1.1 200 ",
                then: .flood(x16)
            ),
            HostileCase(
                "endless 100 responses",
                .cannotParseResponse,
                100,
                "",
                then: flood("HTTP/1.1 100 Continue\r\n\r\n")
            ),
            HostileCase(
                "endless 103 responses",
                .cannotParseResponse,
                100,
                "",
                then: flood("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n")
            ),
            HostileCase(
                "endless folds",
                .cannotParseResponse,
                100,
                "\(ok)X: y\r\n",
                then: flood(" x\r\n")
            ),
        ]
    }

    private static var notHTTP: [HostileCase] {
        [
            HostileCase("no head", .badServerResponse, 8, "hello, world\r\n\r\n"),
            HostileCase("HTTP/9.9", .badServerResponse, 8, "HTTP/9.9 200 OK\r\n\r\nhello"),
            HostileCase("a lower-case version", .badServerResponse, 8, "http/1.1 200\r\n\r\n"),
            HostileCase("a status with letters", .badServerResponse, 8, "HTTP/1.1 200OK\r\n\r\n"),
            HostileCase(
                "two different lengths",
                .badServerResponse,
                8,
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 6\r\n\r\nabcdef"
            ),
            HostileCase("a status of five digits", .badServerResponse, 8, "HTTP/1.1 99999 OK\r\n\r\n"),
            HostileCase("a status below 100", .badServerResponse, 8, "HTTP/1.1 099 OK\r\n\r\n"),
            HostileCase("a negative status", .badServerResponse, 8, "HTTP/1.1 -20 OK\r\n\r\n"),
            HostileCase("a zero byte in a value", .badServerResponse, 8, "\(ok)X: a\0b\r\n\r\n"),
            HostileCase("a zero byte in a name", .badServerResponse, 8, "\(ok)X\0Y: a\r\n\r\n"),
            HostileCase("a line without a colon", .badServerResponse, 8, "\(ok)what is this\r\n\r\n"),
            HostileCase(
                "an unrequested switch of protocols",
                .badServerResponse,
                8,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello"
            ),
            HostileCase(
                "an unrequested switch of protocols without end",
                .badServerResponse,
                8,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
                then: .flood(x16)
            ),
        ]
    }

    private static var slow: [HostileCase] {
        [
            HostileCase("nothing", .timedOut, 28, "", then: .stall(then: .close)),
            HostileCase("half a head, then nothing", .timedOut, 28, "\(ok)X", then: .stall(then: .close)),
            HostileCase(
                "a slow head, one byte at a time",
                .timedOut,
                28,
                ok,
                then: .drip(Array("X-A: b\r\n".utf8))
            ),
            HostileCase(
                "a slow body, one byte at a time",
                .timedOut,
                28,
                status: 200,
                "\(ok)\r\n",
                then: .drip([0x78])
            ),
        ].map { $0.with { $0.totalTimeout = 1000 } }
    }

    /// Unusual responses that are unambiguous and quick to parse.
    private static var odd: [HostileCase] {
        [
            HostileCase(
                "line feeds alone",
                nil,
                nil,
                status: 200,
                "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"
            ),
            HostileCase(
                "50,000 fields of one name",
                nil,
                nil,
                status: 200,
                head + String(repeating: "a:b\r\n", count: 50_000) + "\r\nok"
            ),
            HostileCase(
                "a field of 60,000 lines",
                nil,
                nil,
                status: 200,
                "\(head)X: y\r\n" + String(repeating: " x\r\n", count: 60_000) + "\r\nok"
            ),
        ].map { $0.with { $0.byteCount = 2 } }
    }

    @Test(arguments: tooLong) func `a head without an end is not reported as a reset`(hostile: HostileCase)
        async throws
    {
        try await hostile.check()
    }

    @Test(arguments: notHTTP) func `a response that is not HTTP is an error`(hostile: HostileCase)
        async throws
    {
        try await hostile.check()
    }

    @Test(arguments: slow) func `a server that never completes its head causes a timeout`(
        hostile: HostileCase
    ) async throws {
        try await hostile.check()
    }

    @Test(arguments: odd) func `an unusual but valid head is parsed`(hostile: HostileCase) async throws {
        try await hostile.check()
    }
}
