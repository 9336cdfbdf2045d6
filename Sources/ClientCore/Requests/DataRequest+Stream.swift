public import Foundation
internal import Synchronization

extension DataRequest {
    /// Passes the body to a closure as it arrives instead of keeping it. The response's data is then `nil`.
    ///
    /// Bytes that arrived before this call are passed first. The closure is called on the request's queue, in
    /// order. While it runs, the server is slowed down. When the request is retried, the body starts again from
    /// the first byte.
    @discardableResult
    @preconcurrency
    public func stream(closure: (@Sendable (Data) -> Void)? = nil) -> Self {
        core.perform { core in
            guard var sink = core.sink as? DataSink else { return }
            sink.stream(to: closure)
            core.sink = sink
            if core.state.isSettled { core.letGo() }
        }
        return self
    }
}
