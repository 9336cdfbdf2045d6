internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The record of a partial download: what it contains, and which records are rejected.
@Suite(.timeLimit(.minutes(5))) struct ResumeRecordTests {
    private func record(
        _ head: TransferHead,
        _ request: URLRequest = get()
    ) -> ResumeRecord? {
        ResumeRecord(of: request, head: head, partialFile: "/tmp/part")
    }

    private func refusal(_ json: String) -> String? {
        if case .downloadResumeFailed(.resumeDataInvalid(let why))? = afError({
            _ = try ResumeRecord(data: Data(json.utf8))
        }) {
            return why
        }
        return nil
    }

    /// Returns the sample's JSON with one string replaced by another.
    private func json(_ old: String = "", _ new: String = "") throws -> String {
        let text = String(decoding: try #require(ResumeRecord.sample().data), as: UTF8.self)
        if !old.isEmpty { try #require(text.contains(old)) }
        return text.replacingOccurrences(of: old, with: new)
    }

    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test func `a record has both validators of the response`() throws {
        let fields: KeyValuePairs = ["Accept-Ranges": "bytes", "ETag": "\"v1\"", "Last-Modified": Self.date]
        let record = try #require(self.record(transferHead(200, fields)))
        #expect(record.validator == ResumeValidator(entityTag: "\"v1\"", lastModified: Self.date))
        #expect(record.validator.fieldValue == "\"v1\"")
        #expect(try ResumeRecord(data: try #require(record.data)) == record)
    }

    @Test func `an unquoted entity tag is sent as it was received`() throws {
        let head = transferHead(200, ["Accept-Ranges": "bytes", "ETag": "v1", "Content-Length": "10"])
        var record = try #require(self.record(head))
        #expect(record.validator.fieldValue == "v1")
        #expect(try ResumeRecord(data: try #require(record.data)) == record)
        record.received = 4
        #expect(record.requestHeaders.contains(.init("If-Range", "v1", isExact: true)))
        #expect(record.validator.isConfirmed(by: head))
        #expect(!record.validator.isConfirmed(by: transferHead(206, ["ETag": "\"v1\""])))
    }

    @Test func `a request with a range of the program has no record`() {
        var request = get()
        request.setValue("bytes=0-4", forHTTPHeaderField: "Range")
        #expect(record(wholeHead(10), request) == nil)
    }

    @Test func `a record is decoded as it was encoded`() throws {
        let record = ResumeRecord.sample()
        #expect(try ResumeRecord(data: try #require(record.data)) == record)
        let dated = try #require(
            self.record(
                transferHead(
                    206,
                    [
                        "Content-Range": "bytes 0-9/*", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
                        "Date": "Sun, 06 Nov 1994 08:50:37 GMT",
                    ]
                )
            )
        )
        #expect(dated.validator == ResumeValidator(entityTag: nil, lastModified: Self.date))
        #expect(try ResumeRecord(data: try #require(dated.data)) == dated)
    }

    @Test func `a record is readable JSON`() throws {
        let text = try json()
        #expect(text.contains("\"url\" : \"http://example.com/file?id=1\""))
        #expect(text.contains("\"version\" : 1"))
        #expect(text.contains("\"receivedBytes\" : 100"))
        #expect(text.contains("\"created\" : \"2023-11-14T22:13:20Z\""))
    }

    @Test func `a record contains no password and no header fields`() throws {
        var request = get("http://user:secret@example.com/file?id=1")
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let record = try #require(self.record(wholeHead(10), request))
        #expect(record.url.absoluteString == "http://example.com/file?id=1")
        #expect(record.isOf(request.url!))
        let text = String(decoding: try #require(record.data), as: UTF8.self)
        #expect(!text.contains("secret"))
    }

    @Test(arguments: [
        transferHead(200, ["ETag": "\"v1\""]),
        transferHead(200, ["ETag": "\"v1\"", "Accept-Ranges": "none"]),
        transferHead(200, ["Accept-Ranges": "bytes"]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": "W/\"v1\""]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": "W/v1"]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": "\"v1"]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": "v 1"]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": ""]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": Self.date]),
        transferHead(200, ["Accept-Ranges": "bytes", "ETag": "\"v1\"", "Content-Encoding": "gzip"]),
        transferHead(404, ["Accept-Ranges": "bytes", "ETag": "\"v1\""]),
        transferHead(206, ["ETag": "\"v1\"", "Content-Range": "bytes 5-9/10"]),
        transferHead(206, ["ETag": "\"v1\""]),
        // A `Last-Modified` that is too recent: the file may have changed again within the same minute.
        transferHead(
            200,
            [
                "Accept-Ranges": "bytes", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
                "Date": "Sun, 06 Nov 1994 08:50:36 GMT",
            ]
        ),
        // A weak `ETag`: several versions may share it. The date is not used instead, because it is even less precise.
        transferHead(
            200,
            [
                "Accept-Ranges": "bytes", "ETag": "W/\"v1\"",
                "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Mon, 07 Nov 1994 08:49:37 GMT",
            ]
        ),
    ])
    func `a download that cannot be resumed has no record`(_ head: TransferHead) {
        #expect(record(head) == nil)
    }

    @Test func `a GET that can be resumed has a record`() throws {
        #expect(record(wholeHead(10))?.total == 10)
        let open = try #require(
            self.record(transferHead(200, ["accept-ranges": "lines, Bytes", "etag": "\"v1\""]))
        )
        #expect(open.total == nil)
        var post = get()
        post.httpMethod = "POST"
        #expect(record(wholeHead(10), post) == nil)
    }

    @Test func `an invalid record is refused, and the reason contains the value`() throws {
        #expect(refusal("") == "not a JSON object")
        #expect(refusal("[]") == "not a JSON object")
        #expect(refusal("{}") == "`version` is missing")
        #expect(refusal(try json("\"version\" : 1", "\"version\" : 2"))?.contains("version 2") == true)
        #expect(refusal(try json("GET", "POST"))?.contains("`POST`") == true)
        #expect(refusal(try json("http:", "file:"))?.contains("file://example.com") == true)
        #expect(refusal(try json("http://example.com/file?id=1", "http:///x"))?.contains("host") == true)
        #expect(refusal(try json("/tmp/part", "tmp/part"))?.contains("`tmp/part`") == true)
        #expect(refusal(try json("/tmp/part", "/tmp/\\u0000"))?.contains("absolute path") == true)
        #expect(
            refusal(try json("\"receivedBytes\" : 100", "\"receivedBytes\" : -1"))
                == "receivedBytes is negative"
        )
        #expect(
            refusal(try json("\"receivedBytes\" : 100", "\"receivedBytes\" : 1001"))?.contains(
                "not in ascending order"
            )
                == true
        )
        #expect(
            refusal(try json("\"syncedBytes\" : 50", "\"syncedBytes\" : 101"))?.contains(
                "not in ascending order"
            ) == true
        )
        #expect(refusal(try json("\"receivedBytes\" : 100", "\"receivedBytes\" : 1e99")) != nil)
        #expect(refusal(try json("2023-11-14T22:13:20Z", "yesterday"))?.contains("`yesterday`") == true)
    }

    @Test func `only a valid validator is sent in a header field`() throws {
        let weak = try json("\"entityTag\" : \"\\\"v1\\\"\"", "\"entityTag\" : \"W/\\\"v1\\\"\"")
        #expect(refusal(weak)?.contains("entityTag") == true)
        let split = try json("\\\"v1\\\"", "\\\"v1\\r\\nCookie: a\\\"")
        #expect(refusal(split)?.contains("entityTag") == true)
        let date = try json("\"entityTag\" : \"\\\"v1\\\"\"", "\"lastModified\" : \"now\\r\\nCookie: a\"")
        #expect(refusal(date)?.contains("lastModified") == true)
    }

    @Test func `a truncated record is refused`() throws {
        let data = try #require(ResumeRecord.sample().data)
        for count in 0..<data.count {
            #expect(throws: AFError.self) { try ResumeRecord(data: data.prefix(count)) }
        }
    }

    @Test func `the size of a record is limited for writing and reading`() throws {
        let long = String(repeating: "a", count: ResumeRecord.maximumBytes)
        #expect(refusal(long + "a")?.contains("65537 bytes") == true)
        #expect(record(wholeHead(10), get("http://example.com/" + long))?.data == nil)
    }

    @Test func `a randomly changed record is refused or consistent`() throws {
        let data = try #require(ResumeRecord.sample().data)
        for seed in seeds(3000) {
            var generator = SeededGenerator(seed: seed)
            var bytes = Data(data)
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let at = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[at] = UInt8.random(in: 0...255, using: &generator)
            }
            guard let record = try? ResumeRecord(data: bytes) else { continue }
            #expect(record.partialFile.hasPrefix("/"), "NETWATCH_SEED=\(seed)")
            #expect(0...record.received ~= record.synced, "NETWATCH_SEED=\(seed)")
            #expect(!record.validator.fieldValue.utf8.contains { $0 < 0x20 }, "NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
    ])
    func `an HTTP date is parsed`(_ text: String, _ seconds: Int64) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "Sun, 06 Nov 1994 08:49:37 +00",
        "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nix 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 0６ Nov 1994 08:49:37 GMT",
    ])
    func `an invalid HTTP date is neither parsed nor a validator`(_ text: String) {
        #expect(HTTPDate.seconds(text) == nil)
        #expect(ResumeValidator(entityTag: nil, lastModified: text) == nil)
    }

    @Test(arguments: [
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 6 Nov 1994 08:49:37 GMT", "S\r\n, 06 Nov 1994 08:49:37 GMT",
    ])
    func `an HTTP date that a sender must not use is not a validator`(_ text: String) {
        #expect(HTTPDate.seconds(text) == 784_111_777)
        #expect(ResumeValidator(entityTag: nil, lastModified: text) == nil)
    }

    // MARK: Boots

    @Test func `a record has the id of the boot`() {
        #expect(record(wholeHead(1000))?.bootID == BootID.current)
        #expect(ResumeRecord.sample().updated(received: 1, synced: 1).bootID == BootID.current)
    }

    @Test(arguments: ["", "11111111111111111111111111111111"])
    func `after a reboot, or if the boot is not known, only synced bytes are used`(boot: String) {
        var record = ResumeRecord.sample()
        #expect(record.usable(of: 120) == 120)
        record.bootID = boot
        #expect(record.usable(of: 120) == 50)
    }
}
