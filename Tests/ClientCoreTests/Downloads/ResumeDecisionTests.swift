internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The interpretation of a response to a request for the remaining bytes.
@Suite(.timeLimit(.minutes(5))) struct ResumeDecisionTests {
    /// The record of a partial file with 100 of 1000 bytes of version "v1".
    private let record = ResumeRecord.sample()

    private func decision(_ head: TransferHead, _ record: ResumeRecord? = nil) -> String {
        switch ResumeDecision.of(record: record ?? self.record, head: head) {
        case .continueWith(let range, let total):
            "continue at \(range.lowerBound) of \(total.map(String.init) ?? "*")"
        case .startOver: "start over"
        case .restartWithoutRange: "restart without range"
        case .alreadyComplete: "already complete"
        case .otherBody: "other body"
        case .fail(.downloadResumeFailed(.rangeResponseInvalid)): "invalid"
        case .fail(let error): "\(error)"
        }
    }

    @Test func `the remaining bytes are requested with If-Range`() {
        #expect(
            record.requestHeaders == [
                .init("Range", "bytes=100-"), .init("If-Range", "\"v1\"", isExact: true),
                .init("Accept-Encoding", "identity"),
            ]
        )
        #expect(ResumeRecord.sample(received: 0).requestHeaders.isEmpty)
    }

    @Test func `the last byte of a complete file is requested to identify its version`() {
        let whole = ResumeRecord.sample(received: 1000)
        #expect(whole.requestHeaders.first?.value == "bytes=999-")
        let answer = transferHead(206, ["Content-Range": "bytes 999-999/1000", "ETag": "\"v1\""])
        #expect(decision(answer, whole) == "continue at 999 of 1000")
    }

    @Test func `206 with the requested range continues`() {
        let range = "bytes 100-999/1000"
        let tag = "\"v1\""
        // A server may send less than the client has requested.
        for range in [range, "bytes 100-199/1000", "bytes 100-999/*"] {
            let head = transferHead(206, ["content-range": range, "ETag": tag])
            #expect(decision(head) == "continue at 100 of 1000")
        }
        let sized = transferHead(206, ["Content-Range": range, "Content-Length": "900", "ETag": tag])
        #expect(decision(sized) == "continue at 100 of 1000")
    }

    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test(arguments: [
        ([("ETag", "\"v1\""), ("Last-Modified", date)], "continue at 100 of 1000"),
        ([("ETag", "\"v1\"")], "continue at 100 of 1000"),
        ([("Last-Modified", date)], "continue at 100 of 1000"),
        ([("ETag", "\"v1\""), ("Last-Modified", "Mon, 07 Nov 1994 08:49:37 GMT")], "restart without range"),
        ([("ETag", "\"v2\""), ("Last-Modified", date)], "restart without range"),
        ([], "restart without range"),
    ])
    func `a 206 must show a validator of the record and contradict none`(
        fields: [(String, String)],
        expected: String
    ) {
        let record = ResumeRecord.sample(lastModified: Self.date)
        let range = TransferRequest.Header("Content-Range", "bytes 100-999/1000")
        let headers = [range] + fields.map { TransferRequest.Header($0.0, $0.1) }
        let head = TransferHead(status: 206, version: "HTTP/1.1", headers: headers)
        #expect(decision(head, record) == expected)
    }

    @Test func `206 of another version restarts without a range`() {
        let range = "bytes 100-999/1000"
        #expect(
            decision(transferHead(206, ["Content-Range": range, "ETag": "\"v2\""])) == "restart without range"
        )
        #expect(
            decision(transferHead(206, ["Content-Range": range, "ETag": "W/\"v1\""]))
                == "restart without range"
        )
        #expect(
            decision(transferHead(206, ["Content-Range": "bytes 100-1000/1001", "ETag": "\"v1\""]))
                == "restart without range"
        )
    }

    @Test(arguments: [
        transferHead(206),
        transferHead(206, ["Content-Range": "bytes 0-999/1000"]),
        transferHead(206, ["Content-Range": "bytes 101-999/1000"]),
        transferHead(206, ["Content-Range": "bytes 99-999/1000"]),
        transferHead(206, ["Content-Range": "bytes */1000"]),
        transferHead(206, ["Content-Range": "lines 100-999/1000"]),
        transferHead(206, ["Content-Range": "bytes 100-999/1000", "content-range": "bytes 100-999/1000"]),
        transferHead(206, ["Content-Range": "bytes 100-999/1000", "Content-Length": "901"]),
        transferHead(206, ["Content-Range": "bytes 100-999/1000", "Content-Encoding": "gzip"]),
        transferHead(206, ["Content-Type": "multipart/byteranges; boundary=x"]),
        transferHead(206, ["Content-Type": "multipart/byteranges", "Content-Range": "bytes 100-999/1000"]),
    ])
    func `an inconsistent 206 is refused`(_ head: TransferHead) {
        #expect(decision(head) == "invalid")
    }

    @Test func `200 starts over`() {
        #expect(decision(wholeHead(1000)) == "start over")
    }

    @Test func `412 restarts without a range`() {
        #expect(decision(transferHead(412)) == "restart without range")
    }

    @Test func `416 means complete if the lengths agree, or else restarts without a range`() {
        let unknown = ResumeRecord.sample(received: 100, total: nil)
        #expect(decision(transferHead(416, ["Content-Range": "bytes */100"]), unknown) == "already complete")
        #expect(
            decision(transferHead(416, ["Content-Range": "bytes */99"]), unknown) == "restart without range"
        )
        #expect(decision(transferHead(416), unknown) == "restart without range")
        #expect(
            decision(transferHead(416, ["Content-Range": "bytes */100"]), record) == "restart without range"
        )
        let changed = transferHead(416, ["Content-Range": "bytes */100", "ETag": "\"v2\""])
        #expect(decision(changed, unknown) == "restart without range")
    }

    @Test(arguments: [204, 304, 401, 403, 404, 429, 500, 503])
    func `any other response keeps the partial file`(_ status: Int) {
        #expect(decision(transferHead(status, ["Content-Length": "9"])) == "other body")
    }

    @Test(arguments: [
        ("bytes 2-5/10", ContentRange.part(2...5, total: 10)), ("bytes 0-0/*", .part(0...0, total: nil)),
        ("Bytes */10", .unsatisfied(total: 10)),
    ])
    func `a Content-Range is parsed`(_ text: String, _ range: ContentRange) {
        #expect(ContentRange(text) == range)
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes 2-5", "bytes 2-5/", "bytes 5-2/10", "bytes 2-10/10", "bytes -5/10",
        "bytes 2-/10", "bytes +2-5/10", "bytes 2-5/10 ", "bytes  2-5/10", "bytes=2-5/10", "bytes */*",
        "bytes 2-5/99999999999999999999", "bytes 2-5-6/10", "bytes 2-5/10/10", "bytes ٢-5/10",
    ])
    func `an invalid Content-Range is not parsed`(_ text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test func `random Content-Range values are parsed exactly or not at all`() {
        let pieces = ["bytes", " ", "-", "/", "*", "0", "1", "99", "7", "=", "\u{0}", "é", "+"]
        for seed in seeds(5000) {
            var generator = SeededGenerator(seed: seed)
            let count = Int.random(in: 0...9, using: &generator)
            let text = "bytes " + (0..<count).map { _ in pieces.randomElement(using: &generator)! }.joined()
            guard let range = ContentRange(text) else { continue }
            #expect(range.text == "bytes " + text.dropFirst(6).withoutLeadingZeros, "NETWATCH_SEED=\(seed)")
        }
    }
}

extension ContentRange {
    fileprivate var text: String {
        switch self {
        case .part(let range, let total):
            "bytes \(range.lowerBound)-\(range.upperBound)/\(total.map(String.init) ?? "*")"
        case .unsatisfied(let total): "bytes */\(total)"
        }
    }
}

extension Substring {
    /// The text without leading zeros in its numbers: `007-08/*` becomes `7-8/*`.
    fileprivate var withoutLeadingZeros: String {
        split(separator: "/").map { half in
            half.split(separator: "-").map { Int64($0).map(String.init) ?? String($0) }.joined(separator: "-")
        }.joined(separator: "/")
    }
}
