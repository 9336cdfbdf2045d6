internal import Foundation
internal import Glibc
internal import OfflineQueue

/// A directory that goes away with its owner. In memory where the machine allows: these tests are about
/// what is written, not about the disk.
final class TemporaryDirectory: Sendable {
    let path: String

    init(marker: String = "queue") {
        let base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
        path = "\(base)/netwatch-\(marker)-\(UUID().uuidString)"
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func permissions(of name: String = "") -> mode_t? {
        var status = stat()
        return stat("\(path)/\(name)", &status) == 0 ? status.st_mode & 0o777 : nil
    }
}

let start = Timestamp(milliseconds: 1_800_000_000_000)

func new(
    _ id: String? = nil,
    method: String = "POST",
    host: String = "example.com",
    isFIFO: Bool = false,
    body: String = "hello"
) throws -> NewRequest {
    let request = QueueRequest(method: method, url: "http://\(host)/\(id ?? "")", body: Data(body.utf8))
    return try NewRequest(request, options: EnqueueOptions(isFIFO: isFIFO, id: id))
}

extension SQLiteQueueStore {
    func enqueue(_ requests: NewRequest...) async throws -> [EnqueuedRequest] {
        try await enqueue(requests, now: start)
    }

    func claim(
        _ limit: Int,
        of lane: Int64,
        expediting: Set<HoldReason>? = nil,
        now: Timestamp = start
    ) async throws -> ClaimedBatch {
        try await claim([LaneClaim(lane: lane, limit: limit, expediting: expediting)], now: now)[0]
    }

    func conclude(
        _ request: ClaimedRequest,
        _ verdict: Verdict,
        token: String? = nil,
        due: Timestamp = start,
        now: Timestamp = start,
        laneNotBefore: Timestamp? = nil
    ) async throws -> Bool {
        let conclusion = Conclusion(
            sequence: request.sequence,
            token: token ?? request.lease.token,
            verdict: verdict,
            due: due,
            laneNotBefore: laneNotBefore
        )
        return try await conclude([conclusion], now: now)[0]
    }

    func states() async throws -> [String: QueuedRequest.State] {
        Dictionary(uniqueKeysWithValues: try await list(limit: 1000).map { ($0.id, $0.state) })
    }
}
