public import Foundation
internal import Synchronization

extension DataRequest {
    /// Hands the body on as it comes in place of keeping it: the response's data is then `nil`.
    ///
    /// What has come before the call is handed on first. The closure is called on the request's queue, in
    /// order; while it works, the server is slowed down. When the request is tried again, the body begins anew.
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
