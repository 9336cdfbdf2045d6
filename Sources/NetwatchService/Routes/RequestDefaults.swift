internal import NetwatchEventLoop
package import OfflineQueue

/// The options of submitted requests that do not have their own, which a reload replaces.
package final class RequestDefaults: Sendable {
    private let values: Lock<EnqueueOptions>

    /// - Parameter options: The time to live, the timeouts and the durability. Default: those of `EnqueueOptions`.
    package init(_ options: EnqueueOptions = EnqueueOptions()) {
        values = Lock(options)
    }

    var options: EnqueueOptions { values.withLock { $0 } }

    /// Replaces the options. They apply to requests that are submitted later.
    package func replace(_ options: EnqueueOptions) {
        values.withLock { $0 = options }
    }
}
