internal import BenchmarkSupport
internal import OfflineQueue

/// Measures requests from `enqueue` until their delivery to a server, by a complete queue.
///
/// Arguments: the number of requests; a ``Variant``; the URL of the server; the queue's directory.
enum Sending: Measurement {
    static let name = "sending"

    enum Variant: String {
        case plain
        /// The stored requests are encrypted.
        case encrypted
        /// Each attempt gets a credential, and the origins to which it may be sent are checked.
        case credential
    }

    /// The number of producer tasks.
    private static let producers = 64

    static func run(_ arguments: [String]) async throws {
        let (count, url, directory) = (Int(arguments[0])!, arguments[2], arguments[3])
        let variant = Variant(rawValue: arguments[1])!
        var configuration = OfflineQueue.Configuration(directory: directory)
        if variant == .encrypted { configuration.encryptForBenchmark() }
        let queue = try await OfflineQueue(configuration: configuration)
        var options = EnqueueOptions()
        if variant == .credential {
            options.credential = "token"
            try await queue.register(QueueCredential(.bearer("0123456789"), origins: [url]), as: "token")
        }
        try await queue.start()
        let interval = MeasuredInterval(seconds: 3600)
        try await produce(count, url, options, queue)
        try await queue.waitForDeliveries(count)
        interval.end(operations: count)
        await queue.stop()
    }

    private static func produce(
        _ count: Int,
        _ url: String,
        _ options: EnqueueOptions,
        _ queue: OfflineQueue
    ) async throws {
        let request = QueueRequest(method: "POST", url: "\(url)/small", body: .forBenchmark)
        try await withThrowingTaskGroup { group in
            for producer in 0..<producers {
                group.addTask {
                    for _ in stride(from: producer, to: count, by: producers) {
                        _ = try await queue.enqueue(request, options: options)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
