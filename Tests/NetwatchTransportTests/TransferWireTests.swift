internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// The bytes that a transfer sends, and how it handles the response.
@Suite(.timeLimit(.minutes(5))) struct TransferWireTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    @Test(arguments: ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"])
    func `every method can have a body`(method: String) async throws {
        let server = try ScriptedServer { .respond("\($0.body.count)") }
        var request = TransferRequest(url: "\(server.url)/path?query#fragment", method: method)
        let body = [UInt8](repeating: 0, count: 100_000)
        request.body = .bytes(body)
        let record = await engine.run(request)
        #expect(record.text == "100000")
        #expect(server.requests.map(\.method) == [method])
        #expect(server.requests.map(\.target) == ["/path?query"])
        #expect(server.requests.first?.body == body)
        #expect(record.metrics?.requestBodyBytes == 100_000)
    }

    @Test(arguments: [("POST", ["0"]), ("PUT", ["0"]), ("PATCH", ["0"]), ("GET", []), ("DELETE", [])])
    func `without a body Content-Length is 0 or absent`(method: String, length: [String]) async throws {
        let server = try ScriptedServer()
        let record = await engine.run(TransferRequest(url: server.url, method: method))
        #expect(record.head?.status == 200)
        #expect(server.requests.first?.values(of: "Content-Length") == length)
    }

    @Test func `a HEAD response has headers and no body`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 200, headers: [.init("Content-Length", "5")])
        }
        let record = await engine.run(TransferRequest(url: server.url, method: "HEAD"))
        #expect(record.head?.headers.contains(.init("Content-Length", "5")) == true)
        #expect(record.body.isEmpty)
        #expect(record.hasSucceeded)
    }

    @Test func `headers keep their order, and libcurl adds nothing to a body`() async throws {
        let server = try ScriptedServer()
        var request = TransferRequest(url: server.url, method: "POST")
        // For a body of more than 1 MiB, libcurl by itself would send `Expect: 100-continue`.
        request.body = .bytes([UInt8](repeating: 0, count: 2_000_000))
        request.headers = [.init("X-b", "1"), .init("x-A", "2"), .init("X-Empty", " "), .init("X-b", "3")]
        _ = await engine.run(request)
        let received = try #require(server.requests.first)
        let own = received.headers.filter { $0.name.lowercased().hasPrefix("x-") }
        #expect(own == [.init("X-b", "1"), .init("x-A", "2"), .init("X-Empty", ""), .init("X-b", "3")])
        #expect(received.values(of: "Expect").isEmpty)
        #expect(received.values(of: "Content-Type").isEmpty)
        #expect(received.values(of: "Content-Length") == ["2000000"])
    }

    @Test func `a unix socket replaces the host`() async throws {
        let path = temporarySocketPath()
        defer { unlink(path) }
        let server = try ScriptedServer(unixPath: path) { .respond($0.target) }
        var request = TransferRequest(url: "http://no.such.host.invalid/v1/health")
        request.unixSocketPath = path
        #expect(await engine.run(request).text == "/v1/health")
        #expect(server.requests.first?.values(of: "Host") == ["no.such.host.invalid"])
    }

    @Test func `a transfer connects to the address from netwatch's resolver`() async throws {
        let server = try ScriptedServer { _ in .respond("here") }
        let engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        let record = await engine.run(TransferRequest(url: "http://netwatch.invalid:\(server.port)/"))
        #expect(record.text == "here")
        #expect(server.requests.first?.values(of: "Host") == ["netwatch.invalid:\(server.port)"])
    }

    @Test func `the addresses of a name are tried until one answers`() async throws {
        let server = try ScriptedServer()
        let addresses = ["::1", "127.0.0.2", "127.0.0.1"].map { IPAddress($0)! }
        let engine = try TransferEngine(resolver: NameResolver { _ in .success(addresses) })
        let record = await engine.run(TransferRequest(url: "http://netwatch.invalid:\(server.port)/"))
        #expect(record.head?.status == 200)
    }

    @Test func `a new address is used after connections are renewed`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 200, headers: [.init("Connection", "close")])
        }
        let addresses = Answers(["127.0.0.2", "127.0.0.1"])
        let engine = try TransferEngine(
            resolver: NameResolver { _ in .success([IPAddress(addresses.next())!]) }
        )
        let url = "http://netwatch.invalid:\(server.port)/"
        #expect(await engine.run(TransferRequest(url: url)).failure?.osErrno == ECONNREFUSED)
        engine.renewConnections()
        #expect(await engine.run(TransferRequest(url: url)).head?.status == 200)
    }

    @Test func `a redirect is not followed`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 302, headers: [.init("Location", "/other")]) }
        #expect(await engine.run(TransferRequest(url: server.url)).head?.status == 302)
        #expect(server.requests.count == 1)
    }

    @Test func `interim responses and trailers are not delivered`() async throws {
        let server = try ScriptedServer { _ in
            .send(
                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                    + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n",
                then: .keep
            )
        }
        let record = await engine.run(TransferRequest(url: server.url))
        #expect(record.heads.map(\.status) == [200])
        #expect(record.heads.map(\.headers) == [[.init("Transfer-Encoding", "chunked")]])
        #expect(record.text == "abc")
    }

    @Test func `five hundred concurrent transfers all end`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        let texts = await withTaskGroup { group in
            for index in 0..<500 {
                group.addTask { await engine.run(TransferRequest(url: "\(server.url)/\(index)")).text }
            }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(texts == Set((0..<500).map { "/\($0)" }))
    }

    @Test func `a folded header line is not a status line`() async throws {
        let head = "HTTP/1.1 200 OK\r\nVia: 1.1 a,\r\n HTTP/1.1 404 b\r\nContent-Length: 2\r\n\r\n"
        let server = try ScriptedServer { _ in .send(head + "ok", then: .keep) }
        let record = await engine.run(TransferRequest(url: server.url))
        #expect(record.head?.status == 200)
        #expect(record.head?.fields.values(of: "Via") == ["1.1 a, HTTP/1.1 404 b"])
        #expect(record.text == "ok")
    }

    @Test(arguments: [
        "gzip, chunked", "GZIP", "chunked\r\nTransfer-Encoding: deflate", "chunked;q=1", "chun ked",
    ])
    func `a transfer coding that was not requested is refused`(codings: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: \(codings)\r\nConnection: close\r\n\r\n"
        let gzip = ContentDecoderTests.gzip
        let server = try SocketServer { peer in
            _ = peer.read()
            peer.write(Array("\(head)\(String(gzip.count - 9, radix: 16))\r\n".utf8))
            peer.write(Array(gzip.dropLast(9)) + Array("\r\n0\r\n\r\n".utf8))
        }
        let record = await engine.run(TransferRequest(url: "http://127.0.0.1:\(server.port)/"))
        let shown = codings.replacing("\r\nTransfer-Encoding:", with: ",")
        #expect(record.failure?.code == 61)
        #expect(
            record.failure?.message == "the response has a transfer coding that was not requested: \(shown)"
        )
        #expect(record.heads.isEmpty && record.body.isEmpty)
    }

    @Test(arguments: [("HEAD", 200), ("GET", 304)])
    func `a transfer coding without a body is accepted`(method: String, status: Int) async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 \(status) X\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", then: .keep)
        }
        for _ in 0..<2 {
            let record = await engine.run(TransferRequest(url: server.url, method: method))
            #expect(record.hasSucceeded && record.head?.status == status && record.body.isEmpty)
        }
        #expect(server.connectionCount == 1)
    }

    @Test(arguments: ["chunked", "Chunked", "identity, chunked"])
    func `a body in chunks is received`(codings: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: \(codings)\r\n\r\n"
        let server = try ScriptedServer { _ in .send(head + "2\r\nok\r\n0\r\n\r\n", then: .keep) }
        #expect(await engine.run(TransferRequest(url: server.url)).text == "ok")
    }

    @Test func `a field that is not UTF-8 is sent again as it was received`() async throws {
        let tag: [UInt8] = [0x22, 0xe9, 0xff, 0x22]
        let requests = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            requests.record(peer.read())
            peer.write(
                Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nETag: ".utf8) + tag
            )
            peer.write(Array("\r\n\r\n".utf8))
        }
        var request = TransferRequest(url: "http://127.0.0.1:\(server.port)/")
        let received = await engine.run(request).head?.fields.exactValues(of: "etag").first
        request.headers = [.init("If-Range", try #require(received), isExact: true)]
        #expect(await engine.run(request).hasSucceeded)
        let line = Array("If-Range: ".utf8) + tag + Array("\r\n".utf8)
        #expect(requests.values.last?.firstRange(of: line) != nil)
    }

    @Test func `a field of the program is sent as UTF-8`() async throws {
        let requests = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            requests.record(peer.read())
            peer.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        }
        var request = TransferRequest(url: "http://127.0.0.1:\(server.port)/")
        request.headers = [.init("X-Text", "\u{e9}\u{f7e9}\u{f78a}")]
        #expect(await engine.run(request).hasSucceeded)
        let line = Array("X-Text: \u{e9}\u{f7e9}\u{f78a}\r\n".utf8)
        #expect(requests.values.last?.firstRange(of: line) != nil)
    }
}
