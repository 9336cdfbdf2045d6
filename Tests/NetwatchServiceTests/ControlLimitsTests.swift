internal import Dispatch
internal import NetwatchService
internal import NetwatchTestSupport
internal import Testing

@Suite struct ControlLimitsTests {
    @Test func `malformed bytes get 400 as a problem`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            for garbage in ["\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
                let client = try fixture.client()
                let response = try client.request(garbage)
                #expect(response.status == 400)
                #expect(response.problemCode == "malformed_request")
                #expect(response.headers["connection"] == "close")
                #expect(try client.isClosedByServer())
            }
        }
    }

    @Test func `conflicting body lengths are rejected`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            for extra in ["Content-Length: 3", "Transfer-Encoding: chunked"] {
                let response = try fixture.client().request(
                    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\(extra)\r\n\r\nab"
                )
                #expect(response.problemCode == "malformed_request")
            }
        }
    }

    @Test(arguments: [
        "X: " + String(repeating: "a", count: 8 * 1024 + 1),
        (0..<3).map { "X\($0): " + String(repeating: "a", count: 6 * 1024) }.joined(separator: "\r\n"),
        (0..<101).map { "X\($0): a" }.joined(separator: "\r\n"),
    ])
    func `headers over a limit get 431`(_ headers: String) async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            let response = try client.request("GET /hello HTTP/1.1\r\n\(headers)\r\n\r\n")
            #expect(response.status == 431)
            #expect(response.problemCode == "headers_too_large")
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `headers at the limits are accepted`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let many = (0..<100).map { "X\($0): a" }.joined(separator: "\r\n")
            let long = "X: " + String(repeating: "a", count: 8 * 1024)
            for headers in [many, long] {
                let response = try fixture.client().request("GET /hello HTTP/1.1\r\n\(headers)\r\n\r\n")
                #expect(response.status == 200)
            }
        }
    }

    @Test func `a body is rejected by its Content-Length`() async throws {
        let fixture = try ControlFixture { $0.bodyBytes = 1000 }
        try await offPool {
            let client = try fixture.client()
            for length in ["1001", "99999999999999999"] {
                let client = try fixture.client()
                let head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\r\n"
                let response = try client.request(head)
                #expect(response.status == 413)
                #expect(response.problemCode == "body_too_large")
                #expect(try client.isClosedByServer())
            }
            let body = String(repeating: "a", count: 1000)
            let fits = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n\(body)"
            #expect(try client.request(fits).body == body)
        }
    }

    @Test func `endless chunks are rejected at the limit with a response`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            try client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "10000\r\n" + String(repeating: "a", count: 0x10000) + "\r\n"
            for _ in 0..<64 { try client.send(chunk) }
            #expect(try client.response().status == 413)
        }
    }

    /// Long enough for the client to send the beginning of its request, even on a busy machine. A client that has sent
    /// nothing by then gets no response.
    private static let headerDeadline = Duration.seconds(10)

    @Test func `slow headers get 408 at the deadline`() async throws {
        let fixture = try ControlFixture { $0.headerDeadline = Self.headerDeadline }
        try await offPool {
            let client = try fixture.client()
            try client.send("GET /hello HTTP/1.1\r\nX: ")
            let response = try client.trickle()
            #expect(response?.status == 408)
            #expect(response?.problemCode == "request_timeout")
        }
    }

    @Test func `the header deadline applies to every request of a connection`() async throws {
        let fixture = try ControlFixture { $0.headerDeadline = Self.headerDeadline }
        try await offPool {
            let client = try fixture.client()
            #expect(try client.request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status == 200)
            try client.send("GET /hello HTTP/1.1\r\nX: ")
            #expect(try client.trickle()?.status == 408)
        }
    }

    @Test func `a slow body gets 408 at its deadline`() async throws {
        let fixture = try ControlFixture { $0.bodyDeadline = .milliseconds(200) }
        try await offPool {
            let client = try fixture.client()
            try client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
            let response = try client.trickle()
            #expect(response?.status == 408)
            #expect(response?.problemCode == "request_timeout")
        }
    }

    @Test func `a silent connection is closed without a response`() async throws {
        let fixture = try ControlFixture { $0.headerDeadline = .milliseconds(50) }
        try await offPool {
            let client = try fixture.client()
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `an idle connection is closed without a response`() async throws {
        let fixture = try ControlFixture { $0.idleTimeout = .milliseconds(50) }
        try await offPool {
            let client = try fixture.client()
            #expect(try client.request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status == 200)
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `a slow small body gets 408 at the header deadline`() async throws {
        let fixture = try ControlFixture { $0.headerDeadline = Self.headerDeadline }
        try await offPool {
            let client = try fixture.client()
            try client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
            #expect(try client.trickle()?.problemCode == "request_timeout")
        }
    }

    @Test func `a client that does not read its response is disconnected`() async throws {
        let fixture = try ControlFixture { $0.responseDeadline = .milliseconds(50) }
        try await offPool {
            let client = try fixture.client()
            try client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            try client.waitUntilClosedByServer()
            #expect(throws: RawClientError.self) { try client.response() }
        }
    }

    @Test func `unread responses hold no slot, and the oldest is closed`()
        async throws
    {
        let fixture = try ControlFixture {
            $0.calls = 1
            $0.respondingConnections = 2
            $0.responseDeadline = .seconds(3600)
        }
        try await offPool {
            let clients = try (0..<3).map { _ in
                let client = try fixture.client()
                try client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
                // The first bytes show that the response is being sent.
                _ = try client.receiveMore()
                return client
            }
            #expect(try fixture.client().hello() == 200)
            try clients[0].waitUntilClosedByServer()
            #expect(throws: RawClientError.self) { try clients[0].response() }
            #expect(try clients[2].response().body.utf8.count == 8 << 20)
        }
    }

    @Test func `a full class responds with its limit and does not block other classes`() async throws {
        let fixture = try ControlFixture { $0.waits = 2 }
        let wait = "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n"
        async let waiting = offPool {
            let clients = try (0..<2).map { _ in try fixture.client() }
            for client in clients { try client.send(wait) }
            return try clients.map { try $0.response().body }
        }
        await fixture.gate.isReached(by: 2)
        try await offPool {
            let refused = try fixture.client()
            let response = try refused.request(wait)
            #expect(response.status == 503 && response.problemCode == "busy")
            #expect(response.headers["retry-after"] == "1")
            #expect(response.body.contains(#""class":"wait""#) && response.body.contains(#""limit":2"#))
            #expect(response.headers["connection"] == nil)
            #expect(try refused.hello() == 200)
            #expect(try fixture.client().hello() == 200)
        }
        await fixture.gate.open()
        #expect(try await waiting == ["passed", "passed"])
    }

    private static let hello = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test(arguments: ["", hello])
    func `a closed connection frees its slot when its handler returns`(
        pipelinedBefore earlier: String
    ) async throws {
        let fixture = try ControlFixture { $0.waits = 1 }
        let wait = "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n"
        let mayClose = DispatchSemaphore(value: 0)
        async let closed: Void = offPool {
            let client = try fixture.client()
            try client.send(earlier + wait)
            if !earlier.isEmpty { _ = try client.response() }
            mayClose.wait()
        }
        await fixture.gate.isReached()
        mayClose.signal()
        try await closed
        await fixture.gate.isCancelled()
        let refused = try await offPool { try fixture.client().request(wait).problemCode }
        #expect(refused == "busy")
        await fixture.gate.open()
        // A client learns only from another request that a slot is free.
        try await poll { try await offPool { try fixture.client().request(wait).status != 503 } }
    }

    @Test func `a handled upload does not block the reading of others`() async throws {
        let fixture = try ControlFixture { $0.uploads = 1 }
        let length = 40_000
        let rest = "Host: x\r\nContent-Length: \(length)\r\n\r\n" + String(repeating: "a", count: length)
        async let handled = offPool {
            try fixture.client().request("POST /gate HTTP/1.1\r\n\(rest)").body
        }
        await fixture.gate.isReached()
        let other = try await offPool {
            try fixture.client().request("POST /echo HTTP/1.1\r\n\(rest)").status
        }
        #expect(other == 200)
        await fixture.gate.open()
        #expect(try await handled == "passed")
    }

    @Test func `silent clients are closed to admit others`() async throws {
        let fixture = try ControlFixture {
            // These deadlines are too long to close a connection in this test.
            $0.headerDeadline = .seconds(3600)
            $0.idleTimeout = .seconds(3600)
            ($0.arrivingConnections, $0.arrivalGrace) = (4, .milliseconds(10))
        }
        try await offPool {
            let silent = try (0..<40).map { _ in try fixture.client() }
            #expect(try fixture.client().hello() == 200)
            #expect(try silent[0].isClosedByServer())
        }
    }

    @Test func `an idle connection is closed to admit another`() async throws {
        let fixture = try ControlFixture {
            $0.idleTimeout = .seconds(3600)
            $0.idleConnections = 1
        }
        try await offPool {
            let first = try fixture.client()
            #expect(try first.hello() == 200)
            let second = try fixture.client()
            #expect(try second.hello() == 200)
            #expect(try first.isClosedByServer())
            #expect(try second.hello() == 200)
        }
    }
}

extension RawClient {
    /// Sends a simple request and returns the status of its response.
    fileprivate func hello() throws -> Int { try request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status }

    /// Sends one byte every 20 ms, at most 2,000, until the server responds. Returns `nil` if it never responds.
    fileprivate func trickle() throws -> RawResponse? {
        try setReceiveTimeout(seconds: 0, microseconds: 20_000)
        for _ in 0..<2000 {
            try? send("a")
            do { return try response() } catch is RawClientError { return nil } catch {}
        }
        return nil
    }
}
