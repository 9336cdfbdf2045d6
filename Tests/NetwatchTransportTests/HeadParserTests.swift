internal import Testing

@testable internal import NetwatchTransport

@Suite struct HeadParserTests {
    private func parse(_ lines: [String], method: String = "GET") -> [HeadParser.Step] {
        var parser = HeadParser(method: method)
        return lines.map { line in
            Array("\(line)\r\n".utf8).withUnsafeBytes { parser.consume($0) }
        }
    }

    private func head(_ lines: [String]) -> TransferHead? {
        for case .head(let head) in parse(lines) { return head }
        return nil
    }

    @Test func `headers keep their order, their names and their duplicates`() {
        let head = head(["HTTP/1.1 201 Created", "b: 1", "A:2 ", "B:  3", ""])
        #expect(head?.status == 201)
        #expect(head?.version == "HTTP/1.1")
        #expect(head?.headers == [.init("b", "1"), .init("A", "2"), .init("B", "3")])
    }

    @Test func `the heads of a request that is sent again share one limit`() {
        var parser = HeadParser(method: "GET")
        let status = "HTTP/1.1 200 OK\r\n"
        let field = "a: \(String(repeating: "x", count: HeadParser.maximumBytes - 5 - status.utf8.count))\r\n"
        let first = [status, field].map { line in Array(line.utf8).withUnsafeBytes { parser.consume($0) } }
        parser.restart()
        let second = Array(status.utf8).withUnsafeBytes { parser.consume($0) }
        #expect(first == [.more, .more] && second == .tooLarge)
    }

    @Test func `interim heads are skipped with their headers`() {
        let head = head(["HTTP/1.1 103 Early Hints", "Link: x", "", "HTTP/1.1 200 OK", "a: 1", ""])
        #expect(head == TransferHead(status: 200, version: "HTTP/1.1", headers: [.init("a", "1")]))
    }

    @Test(
        arguments: [
            ("GET", "200 OK", ["Content-Length: 5"], 5), ("GET", "200 OK", ["Content-Length: 5, 5"], 5),
            ("GET", "200 OK", ["Content-Length: 0"], 0), ("GET", "200 OK", [], nil),
            ("GET", "200 OK", ["Content-Length: +5"], nil), ("GET", "200 OK", ["Content-Length:"], nil),
            ("GET", "200 OK", ["Content-Length: 5", "Transfer-Encoding: chunked"], nil),
            ("GET", "204 No Content", [], 0), ("GET", "304 Not Modified", ["Content-Length: 5"], 0),
            ("HEAD", "200 OK", ["Content-Length: 5"], 0),
        ] as [(String, String, [String], Int64?)]
    ) func `the head states the length of the body`(
        method: String,
        status: String,
        fields: [String],
        length: Int64?
    ) {
        var parser = HeadParser(method: method)
        for line in ["HTTP/1.1 \(status)"] + fields {
            _ = Array("\(line)\r\n".utf8).withUnsafeBytes { parser.consume($0) }
            #expect(parser.bodyLength == nil)
        }
        _ = Array("\r\n".utf8).withUnsafeBytes { parser.consume($0) }
        #expect(parser.bodyLength == length)
    }

    @Test func `trailers are not a second head`() {
        let steps = parse(["HTTP/1.1 200 OK", "", "Checksum: 1", "HTTP/1.1 500 No", ""])
        #expect(steps.dropFirst(2).allSatisfy { $0 == .more })
    }

    @Test(arguments: ["HTTP/1.1 404 b", " HTTP/1.1 404 b", "HTTP/1.1: 404"])
    func `only the first line of a head is a status line`(line: String) {
        let head = head(["HTTP/1.1 103 Early Hints", "", "HTTP/1.1 200 OK", "Via: 1.1 a,", line, ""])
        #expect(head?.status == 200)
        #expect(head?.fields.values(of: "Via").first?.hasPrefix("1.1 a,") == true)
    }

    @Test(arguments: [
        "http/1.1 200", "HTTP/1.1 200OK", "HTTP/1.1 20", "HTTP/1.1 099 OK", "HTTP/1.1 +20 OK", "HTTP/1.1",
        "HTTP 200 OK",
        "Via: 1.1 a",
    ])
    func `a head without a valid status line is refused`(line: String) {
        #expect(parse([line]) == [.invalidStatusLine])
    }

    @Test func `different Content-Length fields are refused`() {
        let ok = "HTTP/1.1 200 OK"
        #expect(parse([ok, "Content-Length: 2", "content-length: 5", ""]).last == .ambiguousLength)
        #expect(head([ok, "Content-Length: 2", "content-length: 2", ""])?.status == 200)
        #expect(parse([ok, "Content-Length: 2, 5", ""]).last == .ambiguousLength)
        #expect(head([ok, "Content-Length: 2, 2", ""])?.status == 200)
        let interim = ["HTTP/1.1 103 Early Hints", "Content-Length: 2", "Content-Length: 5", ""]
        #expect(head(interim + [ok, ""])?.status == 200)
    }

    @Test(arguments: ["Content-Length: 1 2, 12", "Content-Length: 2,"])
    func `spaces within a length and empty lengths are refused`(field: String) {
        #expect(parse(["HTTP/1.1 200 OK", field, ""]).last == .ambiguousLength)
    }

    @Test(arguments: [
        ("chunked", true), (" identity ,\tChunked", true), (", chunked", true), ("chun ked", false),
        ("gzip, chunked", false), ("chunked;q=1", false),
    ])
    func `only the transfer codings chunked and identity are accepted`(codings: String, isAccepted: Bool) {
        let last = parse(["HTTP/1.1 200 OK", "Transfer-Encoding: \(codings)", ""]).last
        #expect((last == .unsupportedTransferCoding(codings)) == !isAccepted)
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
    func `a response without a body may name any transfer coding`(method: String, status: Int) {
        let head = ["HTTP/1.1 \(status) X", "Transfer-Encoding: gzip, chunked", ""]
        guard case .head? = parse(head, method: method).last else {
            Issue.record("no head")
            return
        }
    }

    @Test func `a status without a reason, as in HTTP 2, is parsed`() {
        #expect(head(["HTTP/2 204 ", ""])?.status == 204)
    }

    @Test func `a folded line continues its header`() {
        #expect(head(["HTTP/1.1 200 OK", "a: 1", "  2", ""])?.headers == [.init("a", "1 2")])
    }

    @Test func `a blank folded line does not end the head`() {
        #expect(
            head(["HTTP/1.1 200 OK", "a: 1", " ", "b: 2", ""])?.headers == [.init("a", "1"), .init("b", "2")]
        )
    }

    @Test func `bytes that are not UTF-8 are decoded as Latin-1`() {
        var parser = HeadParser(method: "GET")
        _ = Array("HTTP/1.1 200 OK\r\n".utf8).withUnsafeBytes { parser.consume($0) }
        _ = (Array("a: caf".utf8) + [0xe9]).withUnsafeBytes { parser.consume($0) }
        let step = Array("\r\n".utf8).withUnsafeBytes { parser.consume($0) }
        guard case .head(let head) = step else {
            Issue.record("no head")
            return
        }
        #expect(head.headers == [.init("a", "café")])
        #expect(head.fields.values(of: "A") == ["café"])
    }

    @Test func `all heads of a transfer share one limit`() {
        let interim = ["HTTP/1.1 100 Continue", "x: \(String(repeating: "x", count: 1000))", ""]
        let steps = parse((0..<300).flatMap { _ in interim })
        #expect(steps.first == .more)
        #expect(steps.last == .tooLarge)
    }
}
