internal import Foundation
internal import NetworkReachability
internal import OfflineQueue

extension QueueRequest {
    /// Returns a POST of 1 KiB. Its server has the address 192.0.2.`server`, which is reserved for documentation (RFC
    /// 5737).
    static func forBenchmark(server: Int = 0) -> QueueRequest {
        QueueRequest(
            method: "POST",
            url: "https://192.0.2.\(server)/orders",
            headers: [Header(name: "Content-Type", value: "application/octet-stream")],
            body: .forBenchmark
        )
    }

    /// Returns a small request whose origin is different for each lane, in the network that is reserved for benchmarks
    /// (RFC 2544).
    static func forBenchmark(lane: Int) -> QueueRequest {
        QueueRequest(method: "PUT", url: "https://198.18.\(lane / 250).\(lane % 250)/", body: Data("x".utf8))
    }
}

extension Data {
    static let forBenchmark = Data((0..<1024).map { _ in UInt8.random(in: 0 ... .max) })
}

extension QueueLimits {
    /// Limits that are high enough for a million waiting requests.
    static let forBenchmark: QueueLimits = {
        var limits = QueueLimits()
        limits.requests = 10_000_000
        limits.bytes = 10 << 30
        return limits
    }()
}

extension OfflineQueue.Configuration {
    /// Creates a file with an encryption key next to the queue's directory, and uses it.
    mutating func encryptForBenchmark() {
        let path = "\(directory).key"
        let key = Data(String(repeating: "1a", count: 32).utf8)
        let permissions = [FileAttributeKey.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: path, contents: key, attributes: permissions) else {
            fatalError("cannot write \(path)")
        }
        encryptionKeyFile = path
    }
}

extension OfflineQueue {
    /// Waits until this number of requests is delivered. Counting them reads the whole history, so the pauses are as
    /// long as a fast queue needs for the remaining requests.
    func waitForDeliveries(_ count: Int) async throws {
        while case let left = count - (try await counts[.delivered]), left > 0 {
            try await Task.sleep(for: max(.milliseconds(1), .microseconds(20) * left))
        }
    }
}

extension StoreSettings {
    static let forBenchmark: StoreSettings = {
        var settings = StoreSettings()
        settings.limits = .forBenchmark
        return settings
    }()
}

extension SQLiteQueueStore {
    /// Claims at most `limit` requests of a lane.
    func claim(_ limit: Int, of lane: Int64) async throws -> [ClaimedRequest] {
        try await claim([LaneClaim(lane: lane, limit: limit)]).flatMap(\.requests)
    }

    /// Concludes requests with the given verdict. The recorded attempt took 12 ms and received a 200 with a short body.
    func conclude(_ requests: [ClaimedRequest], _ verdict: Verdict) async throws {
        let conclusions = requests.map { request in
            Conclusion(
                sequence: request.sequence,
                token: request.lease.token,
                verdict: verdict,
                status: 200,
                attempt: AttemptRecord(duration: .milliseconds(12), curlCode: 0),
                response: .forBenchmark
            )
        }
        guard try await conclude(conclusions).allSatisfy(\.self) else { fatalError("a lease was lost") }
    }
}

extension RecordedResponse {
    fileprivate static let forBenchmark = RecordedResponse(
        status: 200,
        headers: [QueueRequest.Header(name: "Content-Type", value: "application/json")],
        body: Data("{}".utf8),
        isTruncated: false
    )
}

extension AttemptOutcome {
    static let forBenchmark = response(status: 200, headers: [], body: Data(), isTruncated: false)
}

/// A gate that reports every host as not reachable, so that a running queue sends nothing.
struct ClosedGate: HostGate {
    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        report(.down(.noRoute))
        return nil
    }
}

/// A sender that the queue never calls, because ``ClosedGate`` reports no path.
struct IdleSender: AttemptSender {
    func send(_ attempt: Attempt) async -> AttemptOutcome {
        .failure(AttemptFailure(code: 7, phase: .connect, message: "not sent"))
    }

    func dropConnections() async {}
}
