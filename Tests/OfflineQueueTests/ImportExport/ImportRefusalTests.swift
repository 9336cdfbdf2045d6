internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Files that are not a valid and complete export. An import refuses them before it changes anything, and names the
/// line.
@Suite(.timeLimit(.minutes(5))) struct ImportRefusalTests {
    private let first = TemporaryDirectory()
    private let second = TemporaryDirectory()
    private let files = TemporaryDirectory()

    private func export(_ count: Int) async throws -> Data {
        try await withQueue(first) { queue, _ in
            try await queue.populate(count)
            return try await queue.exported()
        }
    }

    private func fault(_ data: Data) -> QueueError? {
        do {
            _ = try ExportContent(data)
            return nil
        } catch {
            return error as? QueueError
        }
    }

    @Test func `a truncated export is refused`() async throws {
        let data = try await export(8)
        #expect(fault(data) == nil)
        var generator = SeededGenerator(seed: seed("cut"))
        let places = (0..<300).map { _ in Int.random(in: 0..<data.count, using: &generator) }
        for place in places + Array(data.count - 120..<data.count) {
            #expect(
                fault(data.prefix(place))?.code == .invalidImport,
                "cut to \(place) of \(data.count) bytes"
            )
        }
    }

    @Test func `an export in which any byte is edited is refused`() async throws {
        let data = try await export(8)
        var generator = SeededGenerator(seed: seed("edit"))
        let places = (0..<300).map { _ in Int.random(in: 0..<data.count, using: &generator) }
        for place in places + Array(0..<100) + Array(data.count - 120..<data.count) {
            var edited = data
            edited[place] ^= UInt8(1 << Int.random(in: 0..<8, using: &generator))
            #expect(fault(edited)?.code == .invalidImport, "byte \(place) of \(data.count)")
        }
    }

    /// Shows that the end line detects the edits of the two tests above: with a matching end line, such an edit is
    /// accepted.
    @Test func `an export with an edited line and a matching end line is accepted if the line is valid`()
        async throws
    {
        let text = lines(try await export(3)).map { $0.replacing("host1.example", with: "host9.example") }
        #expect(fault(try sealed(text)) == nil)
    }

    private func seed(_ name: String) -> UInt64 {
        let seed =
            ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
            ?? .random(in: 0...9999)
        print("\(name): NETWATCH_SEED=\(seed)")
        return seed
    }

    @Test func `a refused import names the line and changes nothing`() async throws {
        let data = try await export(8)
        var text = lines(data)
        text[5] = "{}"
        let path = try file(try sealed(text), in: files)
        try await withQueue(second) { queue, _ in
            let error = await #expect(throws: QueueError.self) { try await queue.importRequests(from: path) }
            #expect(error?.code == .invalidImport && error?.message.contains("line 6") == true)
            let requests = try await queue.statistics().requests
            #expect(requests == 0)
            let missing = await errorCode { _ = try await queue.importRequests(from: "\(path).not") }
            #expect(missing == .bodyFileUnusable)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(second.path)/spool").isEmpty)
    }

    private static let header = #"{"v":1,"type":"netwatch-queue-export","created":1,"dead":true}"#
    private static let request = """
        {"request":{"dependencies":[],"atMostOnce":false,"attempts":0,"created":1,"deferrals":0,"expires":2,"fifo":false,\
        "headers":[["A","b"]],"id":"x","lane":"","life":1,"method":"GET","priority":5,"state":"pending",\
        "url":"http://a/"}}
        """

    @Test func `the shortest exports are accepted`() throws {
        #expect(fault(try sealed([Self.header])) == nil)
        let export = try sealed([Self.header, Self.request])
        #expect(fault(export) == nil)
        #expect(fault(Data("\u{feff}".utf8) + export) == nil, "an editor may add a byte order mark")
    }

    @Test(arguments: [
        (#""A","b""#, #""TE","trailers""#),
        (#""life":1"#, #""life":1,"key":{"header":"TE","quoted":false,"value":"v"}"#),
    ]) func `an import accepts a header that only older versions accepted, also as the key's header`(
        old: String,
        new: String
    ) throws {
        #expect(fault(try sealed([Self.header, Self.request.replacing(old, with: new)])) == nil)
    }

    @Test(arguments: [
        (#""state":"pending""#, #""state":"inflight""#), (#""state":"pending""#, #""state":"held""#),
        (#""state":"pending""#, #""state":"held","holdReason":"mood""#),
        (#""state":"pending""#, #""state":"pending","holdReason":"user""#),
        (#""id":"x""#, #""id":"""#), (#""id":"x""#, #""id":"x\n""#), (#""id":"x","#, ""),
        (#""GET""#, #""G T""#), (#""GET""#, #""CONNECT""#), ("http://a/", "ftp://a/"),
        (#""A","b""#, #""A","b\r\nC: d""#), (#""A","b""#, #""A""#),
        (#""A","b""#, #""Content-Length","1""#),
        (#""priority":5"#, #""priority":10"#), (#""priority":5"#, #""priority":5e300"#),
        (#""attempts":0"#, #""attempts":-1"#), (#""expires":2"#, #""expires":9223372036854775807"#),
        (#""created":1,"#, #""created":"1","#), (#""dependencies":[]"#, #""dependencies":["x"]"#),
        (#""life":1"#, #""life":1,"maximumAttempts":0"#), (#""life":1"#, #""life":1,"expect":"status=9""#),
        (#""life":1"#, #""life":1,"replaceKey":"é""#),
        (#""life":1"#, #""life":1,"constraints":"\#(String(repeating: "x", count: 4097))""#),
        (#""life":1"#, #""life":1,"key":{"header":"Cookie","quoted":false,"value":"v"}"#),
        (#""life":1"#, #""life":1,"key":{"header":"A","quoted":false,"value":"v"}"#),
        (#""life":1"#, #""life":1,"body":{"bytes":0,"sha256":""}"#),
        (#""life":1"#, #""life":1,"body":{"bytes":536870913,"sha256":"\#(digest)"}"#),
        (#""life":1"#, #""life":1,"body":{"bytes":3,"sha256":"\#(digest)"}"#),
        ("{\"request\"", "{\"other\""), ("}}", "}"),
    ]) func `a request that could not be enqueued is not accepted in an export`(old: String, new: String)
        throws
    {
        #expect(Self.request.contains(old))
        let edited = Self.request.replacing(old, with: new)
        let error = fault(try sealed([Self.header, edited]))
        #expect(error?.code == .invalidImport)
        #expect(error?.message.contains("line 2") == true || error?.message.contains("line 3") == true)
    }

    /// The SHA-256 digest of no bytes.
    private static let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    @Test(arguments: [
        [], ["{}"], [#"{"v":2,"type":"netwatch-queue-export"}"#], [#"{"v":1,"type":"else"}"#],
        [header, "\"\""], [header, #"{"void":true}"#], [header, request, "\"aGV5\""], [header, header],
        [header, String(repeating: " ", count: 1 << 21)],
    ]) func `lines in another order are refused`(lines: [String]) throws {
        #expect(fault(try sealed(lines))?.code == .invalidImport)
    }

    @Test func `a line or a partial line after the end is refused`() throws {
        let whole = try sealed([Self.header])
        #expect(fault(whole + Data("\n".utf8))?.code == .invalidImport)
        #expect(fault(whole + whole)?.code == .invalidImport)
        #expect(fault(whole.dropLast())?.code == .invalidImport)
        #expect(fault(Data())?.code == .invalidImport)
    }

    @Test func `a body must have the exact line format of an export`() throws {
        let hey = "fa690b82061edfd2852629aeba8a8977b57e40fcb77d1a7a28b26cba62591204"
        let request = Self.request.replacing(
            #""life":1"#,
            with: #""life":1,"body":{"bytes":3,"sha256":"\#(hey)"}"#
        )
        .replacing("GET", with: "POST")
        func fault(_ lines: [String]) throws -> QueueError? {
            self.fault(try sealed([Self.header, request] + lines))
        }
        #expect(try fault(["\"aGV5\""]) == nil)
        #expect(try fault([#"{"void":true}"#]) == nil)
        for lines in [
            [], ["\"aGU=\""], ["\"aGV6\""], ["\"aGV5aGV5\""], ["aGV5"], ["\"a GV5\""], ["\"\"", "\"aGV5\""],
            [#"{"void": true}"#], ["\"aGU=\"", "\"eQ==\""],
        ] {
            #expect(try fault(lines)?.code == .invalidImport, "\(lines)")
        }
    }
}
