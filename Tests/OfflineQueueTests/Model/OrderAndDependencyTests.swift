internal import OfflineQueue
internal import Testing

/// Dependencies between requests of a FIFO lane. There, each request also waits for the one before it, and dependencies
/// must not contradict that order.
@Suite struct OrderAndDependencyTests {
    private let directory = TemporaryDirectory()

    private func request(_ id: String, after: [String] = [], replaceKey: String? = nil) throws -> NewRequest {
        var options = EnqueueOptions(isFIFO: true, id: id)
        options.dependencies = after
        options.replaceKey = replaceKey
        return try NewRequest(
            QueueRequest(method: "PUT", url: "http://example.com/\(id)"),
            options: options
        )
    }

    @Test func `a request of a FIFO lane cannot depend on a later one of the lane`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let error = try await #require(throws: QueueError.self) {
            _ = try await store.enqueue([
                try self.request("first", after: ["second"]), try self.request("second"),
            ])
        }
        #expect(error.code == .cyclicDependency)
        #expect(error.message.contains("first") && error.message.contains("second"))
        #expect(try await store.counts()[.blocked] == 0)
        #expect(try await store.statistics().requests == 0)
    }

    @Test func `a FIFO request is held if its dependency is replaced by a later request of the lane`()
        async throws
    {
        let store = try await SQLiteQueueStore(directory: directory.path)
        _ = try await store.enqueue([try request("old", replaceKey: "state")])
        _ = try await store.enqueue([try request("report", after: ["old"])])
        _ = try await store.enqueue([try request("new", replaceKey: "state")])
        let report = try #require(try await store.details(of: "report"))
        #expect(report.summary.holdReason == .dependency)
        #expect(report.dependencies.isEmpty)
    }
}
