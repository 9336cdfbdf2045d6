internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// What the routes of the queue take and refuse.
@Suite struct QueueRoutesTests {
    private let directory = try! ScratchDirectory()

    /// A queue that is not started, so that nothing is sent.
    private func open() async throws -> OfflineQueue {
        try await OfflineQueue(configuration: OfflineQueue.Configuration(directory: directory.file("state")))
    }

    private struct Answer {
        let status: UInt
        let members: [String: Any]

        var code: String? { members["code"] as? String }
        var detail: String { members["detail"] as? String ?? "" }
    }

    private func answer(
        _ queue: OfflineQueue,
        _ method: HTTPMethod,
        _ target: String,
        _ body: String = ""
    ) async throws -> Answer {
        let request = ControlRequest(
            method: method,
            target: try #require(RequestTarget(target)),
            body: Array(body.utf8),
            peer: PeerCredentials(pid: 1, uid: 0, gid: 0)
        )
        let response = await QueueRoutes(queue: queue, isRunning: true).router.respond(to: request)
        let object = try JSONSerialization.jsonObject(with: Data(response.body))
        return Answer(status: response.status.code, members: try #require(object as? [String: Any]))
    }

    @Test func `what is paused is told as resume takes it, and no lane is 404`() async throws {
        let queue = try await open()
        for lane in [nil, "l"] {
            _ = try await queue.enqueue(
                QueueRequest(method: "POST", url: "http://a.example/"),
                options: EnqueueOptions(lane: lane)
            )
        }
        let unknown = try await answer(queue, .POST, "/v1/queue/pause", #"{"host":"b.example"}"#)
        #expect(unknown.status == 404 && unknown.code == "unknown_lane")
        let paused = try await answer(queue, .POST, "/v1/queue/pause", #"{"host":"a.example"}"#)
        #expect(paused.members["lanes"] as? Int == 2)
        func pausedLanes() async throws -> [[String: String]] {
            let statistics = try await answer(queue, .GET, "/v1/queue/stats").members
            #expect(statistics["paused"] as? Bool == false)
            return try #require(statistics["paused_lanes"] as? [[String: String]])
        }
        let lanes = try await pausedLanes()
        #expect(lanes == [["host": "a.example", "lane": ""], ["host": "a.example", "lane": "l"]])
        let first = String(decoding: try JSONEncoder().encode(lanes[0]), as: UTF8.self)
        let resumed = try await answer(queue, .POST, "/v1/queue/resume", first)
        #expect(resumed.members["lanes"] as? Int == 1)
        #expect(try await pausedLanes() == [["host": "a.example", "lane": "l"]])
        #expect(try await answer(queue, .POST, "/v1/queue/resume").status == 200)
        #expect(try await pausedLanes().isEmpty)
        await queue.stop()
    }
}
