internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchService
internal import NetwatchTestSupport
internal import Testing

@Suite struct ControlServerTests {
    @Test func `one connection serves several requests`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            for _ in 0..<3 {
                let response = try client.request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(response.status == 200)
                #expect(response.body == "hello")
                #expect(response.headers["connection"] == nil)
            }
        }
    }

    @Test func `bodies with a length and chunked bodies arrive complete`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            let text = String(repeating: "netwatch ", count: 20_000)
            let whole = try client.request(
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
            )
            #expect(whole.body == text)
            let chunked = try client.request(
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            )
            #expect(chunked.body == "abcde")
        }
    }

    @Test func `pipelined requests get their responses in order`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            let requests = (0..<50).map {
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n\(10 + $0)"
            }
            try client.send(requests.joined())
            for index in 0..<50 {
                #expect(try client.response().body == "\(10 + index)")
            }
        }
    }

    @Test func `a valid request before malformed bytes gets its response first`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            try client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n\u{1}\u{2}\u{3}\r\n\r\n")
            #expect(try client.response().status == 200)
            #expect(try client.response().problemCode == "malformed_request")
            #expect(try client.isClosedByServer())
        }
    }

    @Test func `an unknown path gets 404, and an unaccepted method 405 with Allow`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            let missing = try client.request("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(missing.status == 404)
            #expect(missing.problemCode == "not_found")
            let wrong = try client.request("DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(wrong.status == 405)
            #expect(wrong.problemCode == "method_not_allowed")
            #expect(wrong.headers["allow"] == "GET, HEAD")
        }
    }

    @Test func `HEAD sends the length without a body`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            for target in ["/hello", "/nothing"] {
                try client.send("HEAD \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(Int(try client.response(toHead: true).headers["content-length"]!)! > 0)
            }
            #expect(try client.request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").body == "hello")
        }
    }

    @Test func `the query is decoded, and an invalid target is rejected`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            let query = "GET /query?a=1&b=%C3%BC+x&c HTTP/1.1\r\nHost: x\r\n\r\n"
            #expect(try client.request(query).body == "[\"a=1\",\"b=ü+x\",\"c=nil\"]\n")
            let broken = "GET /query?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n"
            #expect(try client.request(broken).problemCode == "malformed_target")
        }
    }

    @Test func `a half-closed connection still gets its response`() async throws {
        let fixture = try ControlFixture()
        async let response = offPool {
            let client = try fixture.client()
            try client.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n")
            client.closeOutput()
            let body = try client.response().body
            return try (body, client.isClosedByServer())
        }
        await fixture.gate.isReached()
        await fixture.gate.open()
        #expect(try await response == ("passed", true))
    }

    @Test func `the handler receives the peer's credentials`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let own = try fixture.client().request("GET /peer HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(own.body == "[\(getpid()),\(getuid()),\(getgid())]\n")
        }
    }

    @Test func `a stop finishes the request in flight and then closes`() async throws {
        let fixture = try ControlFixture()
        async let response = offPool {
            let client = try fixture.client()
            let body = try client.request("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n").body
            return try (body, client.isClosedByServer())
        }
        await fixture.gate.isReached()
        async let stopped: Void = fixture.server.stop()
        // The stop removes the socket path first, so its absence shows that the stop has begun.
        try await until(changesIn: fixture.directory.path) { access(fixture.path, F_OK) != 0 }
        await fixture.gate.open()
        #expect(try await response == ("passed", true))
        await stopped
    }

    @Test func `a stop does not wait for an idle connection or beyond its grace`() async throws {
        let fixture = try ControlFixture { $0.stopGrace = .milliseconds(50) }
        let isIdle = DispatchSemaphore(value: 0)
        async let idle = offPool {
            let client = try fixture.client()
            _ = try client.request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            isIdle.signal()
            return try client.isClosedByServer()
        }
        async let stuck = offPool {
            let client = try fixture.client()
            try client.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n")
            return try client.isClosedByServer()
        }
        try await offPool { isIdle.wait() }
        await fixture.gate.isReached()
        await fixture.server.stop()
        #expect(try await stuck)
        #expect(try await idle)
        await fixture.gate.open()
    }

    @Test(.timeLimit(.minutes(1))) func `a new grace applies to the next stop`() async throws {
        let fixture = try ControlFixture { $0.stopGrace = .seconds(3600) }
        async let stuck = offPool {
            let client = try fixture.client()
            try client.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n")
            return try client.isClosedByServer()
        }
        await fixture.gate.isReached()
        fixture.server.use(stopGrace: .milliseconds(50))
        await fixture.server.stop()
        #expect(try await stuck)
        await fixture.gate.open()
    }
}

@Suite(.enabled(if: access("/usr/bin/curl", X_OK) == 0, "curl is not installed"))
struct CurlTests {
    private func curl(_ fixture: ControlFixture, _ arguments: [String]) async throws -> Subprocess.Outcome {
        let fixed = ["-sS", "--unix-socket", fixture.path]
        return try await Subprocess("/usr/bin/curl", fixed + arguments).outcome()
    }

    @Test func `curl gets a response with its own process id`() async throws {
        let fixture = try ControlFixture()
        let outcome = try await curl(fixture, ["http://localhost/peer"])
        #expect(outcome.output == ["[\(outcome.pid),\(getuid()),\(getgid())]"])
    }

    @Test func `curl reads the response to a too large body`() async throws {
        let fixture = try ControlFixture()
        let body = fixture.directory.file("body")
        try Data(count: 3 << 20).write(to: URL(fileURLWithPath: body))
        for extra in [[], ["-H", "Expect:"], ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"]] {
            let data = ["--data-binary", "@\(body)", "-o", "/dev/null", "-w", "%{http_code}"]
            let outcome = try await curl(fixture, data + extra + ["http://localhost/echo"])
            #expect(outcome.output == ["413"])
        }
    }

    @Test func `curl receives 100 Continue for a body that fits`() async throws {
        let fixture = try ControlFixture()
        let body = fixture.directory.file("body")
        try Data(repeating: 97, count: 1 << 20).write(to: URL(fileURLWithPath: body))
        let arguments = ["-v", "-H", "Expect: 100-continue", "--data-binary", "@\(body)", "-o", "/dev/null"]
        let outcome = try await curl(fixture, arguments + ["http://localhost/echo"])
        #expect(outcome.errors.contains { $0.hasPrefix("< HTTP/1.1 100 Continue") })
        #expect(outcome.errors.contains { $0.hasPrefix("< HTTP/1.1 200 OK") })
    }
}
