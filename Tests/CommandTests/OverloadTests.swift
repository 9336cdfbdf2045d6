internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

/// Service behavior for normal clients while other clients wait, are idle, send nothing, send slowly, or do not read.
@Suite(.serialized, .timeLimit(.minutes(10))) struct OverloadTests {
    private static let many = CheckSize.choose(small: 64, medium: 1000, full: 1000)

    /// Starts a service and enqueues `count` requests that are not sent.
    private func service(_ count: Int, urlBytes: Int = 40) async throws -> RunningService {
        raiseDescriptors()
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let url = "http://127.0.0.1:1/" + String(repeating: "a", count: urlBytes)
        let path = service.socket
        try await offPool {
            let client = try RawClient(path)
            for number in 0..<count {
                let body = #"{"url":"\#(url)","id":"kept-\#(number)","queue":"always"}"#
                #expect(try client.post("/v1/requests", body).status == 202)
            }
        }
        return service
    }

    /// Expects `netwatch status` and `netwatch queue` to report the service and its queue.
    private func expectAnswers(_ service: RunningService, requests: Int) async throws {
        let status = try await service.run("status", "--timeout", "30s", "--format", "json")
        #expect(status.output.joined().contains(#""state":"running""#), "\(status.output) \(status.errors)")
        let stats = try await service.run("queue", "stats", "--format", "json")
        #expect(stats.ending == .exited(0), "\(stats.errors)")
        let list = try await service.run("queue", "list", "-n", "\(requests)", "--format", "json")
        #expect(list.ending == .exited(0) && list.output.count == requests, "\(list.errors)")
    }

    @Test func `status and queue respond while many clients wait`() async throws {
        let service = try await service(1)
        let load = try OverloadLoad(service.socket, .init(waits: Self.many), waiting: "kept-0")
        try await service.haveAccepted(Self.many)
        try await expectAnswers(service, requests: 1)
        load.release()
    }

    @Test func `status and queue respond while many clients are silent`() async throws {
        let service = try await service(1)
        let load = try OverloadLoad(service.socket, .init(silent: Self.many), waiting: "kept-0")
        // The service keeps at most 1024 of these connections, and fewer if its descriptor limit is low.
        try await service.haveAccepted(min(Self.many, 400))
        try await expectAnswers(service, requests: 1)
        load.release()
    }

    @Test func `a long list comes in pages of at most 1 MiB, and the command follows them`() async throws {
        let count = 300
        let service = try await service(count, urlBytes: 15_000)
        let path = service.socket
        let pages = try await offPool {
            let client = try RawClient(path)
            var (pages, next): ([Int], String?) = ([], "")
            while let cursor = next {
                let after = cursor.isEmpty ? "" : "&after=\(cursor)"
                let page = try client.get("/v1/requests?limit=1000" + after)
                #expect(page.status == 200 && page.body.utf8.count <= 1 << 20)
                let object = try #require(
                    JSONSerialization.jsonObject(with: Data(page.body.utf8)) as? [String: Any]
                )
                pages.append((object["requests"] as? [Any])?.count ?? 0)
                next = object["next"] as? String
            }
            return pages
        }
        #expect(pages.count == 5 && pages.reduce(0, +) == count && pages.allSatisfy { $0 > 0 })
        let listed = try await service.run("queue", "list", "-n", "1000", "--format", "json")
        #expect(listed.ending == .exited(0) && listed.output.count == count, "\(listed.errors)")
        let some = try await service.run("queue", "list", "-n", "100", "--format", "json")
        #expect(some.ending == .exited(0) && some.output.count == 100)
    }

    @Test func `all abuse at once delays no short call and loses nothing; memory is returned`() async throws {
        let size: OverloadLoad.Size = CheckSize.choose(
            small: .init(waits: 100, silent: 20, idle: 50, slow: 20, listings: 5, uploads: 16),
            medium: .init(waits: 500, silent: 100, idle: 250, slow: 50, listings: 10, uploads: 32),
            full: .init(waits: 1000, silent: 200, idle: 500, slow: 200, listings: 20, uploads: 64)
        )
        let seconds = CheckSize.choose(small: 0, medium: 10, full: 60)
        let bodies = CheckSize.choose(small: 100, medium: 1000, full: 5000)
        let kept = 300
        let service = try await service(kept, urlBytes: 15_000)
        let idle = try #require(ResidentMemory(of: service.process.pid)).mebibytes
        let load = try OverloadLoad(service.socket, size, waiting: "kept-0")
        let (path, pid) = (service.socket, service.process.pid)
        try await service.haveAccepted(size.waits + size.silent / 2)
        let isDone = Atomic<Bool>(false)
        async let calls = offPool {
            try ShortCalls(path, of: pid, for: seconds) { isDone.load(ordering: .relaxed) }
        }
        let accepted = try await offPool {
            defer { isDone.store(true, ordering: .relaxed) }
            return try MutatedBodies(path, seed: 1, count: bodies).accepted
        }
        let measured = try await calls
        print(
            """
            abuse: \(measured.count) short calls, 99 % within \(measured.percentile(99)), all within \
            \(measured.percentile(100)); memory \(idle) MiB idle, \(measured.peak) MiB at most
            """
        )
        #expect(measured.failures == [])
        #expect(measured.peak - idle < 110)
        if CheckSize.current == .full { #expect(measured.percentile(99) < .seconds(1)) }
        load.release()
        try await service.returnsMemory(to: idle + 16)
        try await service.kill()
        try await expectKept(kept + accepted + measured.accepted, in: service)
    }

    private func expectKept(_ count: Int, in service: RunningService) async throws {
        let outcome = try await Command.run(
            "queue",
            "stats",
            "--format",
            "json",
            "--state-dir",
            service.stateDirectory
        )
        let stats = try Command.json(try #require(outcome.output.first))
        #expect(stats["requests"] as? Int == count)
    }

    private func raiseDescriptors() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }
}

extension RunningService {
    /// Waits until the service has at least `count` descriptors open, which shows that it has accepted the connections.
    fileprivate func haveAccepted(_ count: Int) async throws {
        let directory = "/proc/\(process.pid)/fd"
        try await poll { try FileManager.default.contentsOfDirectory(atPath: directory).count >= count }
    }

    /// Waits until the service's resident memory is at most `mebibytes`.
    fileprivate func returnsMemory(to mebibytes: Double) async throws {
        try await poll(every: .milliseconds(200)) {
            ResidentMemory(of: process.pid).map { $0.mebibytes <= mebibytes } ?? true
        }
    }
}

// MARK: - Well-formed and malformed calls

/// Short sequential calls, each on its own connection.
private struct ShortCalls {
    private(set) var latencies: [Duration] = []
    private(set) var failures: [String] = []
    /// The number of requests that the queue accepted.
    private(set) var accepted = 0
    /// The maximum resident memory of the service, in MiB.
    private(set) var peak = 0.0

    var count: Int { latencies.count }

    /// - Parameter isDone: Returns whether to stop. There are at least ten calls, and they continue for at least
    ///   `seconds`.
    init(_ path: String, of pid: Int32, for seconds: Int, until isDone: () -> Bool) throws {
        let end = ContinuousClock.now + .seconds(seconds)
        while !isDone() || .now < end || count < 10 {
            peak = max(peak, ResidentMemory(of: pid)?.mebibytes ?? 0)
            let start = ContinuousClock.now
            let response = try call(count, path)
            latencies.append(.now - start)
            if response.status == 202 { accepted += 1 }
            if !(200...202).contains(response.status) {
                failures.append("\(response.status) \(response.body)")
            }
        }
        latencies.sort()
    }

    private func call(_ number: Int, _ path: String) throws -> RawResponse {
        let client = try RawClient(path)
        switch number % 3 {
        case 0: return try client.get("/v1/requests?limit=1")
        case 1: return try client.get("/v1/queue/stats")
        default: return try client.post("/v1/requests", #"{"url":"http://127.0.0.1:1/","queue":"always"}"#)
        }
    }

    func percentile(_ percent: Int) -> Duration {
        latencies.isEmpty ? .zero : latencies[min(count - 1, count * percent / 100)]
    }
}

/// Request messages with a few random bytes changed, removed, or duplicated.
private struct MutatedBodies {
    /// The number of messages that the queue accepted despite the changes.
    private(set) var accepted = 0

    init(_ path: String, seed: UInt64, count: Int) throws {
        var generator = SeededGenerator(seed: seed)
        let whole = Array(
            #"{"url":"http://127.0.0.1:1/","method":"POST","headers":[["A","b"]],"body":"c","queue":"always"}"#
                .utf8
        )
        for number in 0..<count {
            var body = whole
            for _ in 0...Int.random(in: 0...3, using: &generator) {
                body.changeByte(using: &generator)
            }
            let response = try RawClient(path).post("/v1/requests", body)
            if response.status == 202 { accepted += 1 }
            #expect([200, 202, 400].contains(response.status), "seed \(seed), body \(number): \(response)")
        }
    }
}

extension RawClient {
    fileprivate func get(_ target: String) throws -> RawResponse {
        try request("GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    fileprivate func post(_ target: String, _ body: String) throws -> RawResponse {
        try post(target, Array(body.utf8))
    }

    fileprivate func post(_ target: String, _ body: [UInt8]) throws -> RawResponse {
        try send(
            Array("POST \(target) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
        )
        return try response()
    }
}
