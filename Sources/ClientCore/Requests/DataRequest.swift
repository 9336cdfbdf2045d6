public import Foundation

/// A request whose response body is kept in memory. ``BodyRequest`` declares its handlers and checks.
public class DataRequest: BodyRequest<Data>, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// Passes the body to a closure as it arrives, instead of keeping it in memory. Handlers receive `nil` as the data.
    ///
    /// The closure is called on the request's queue, in order. It first receives the bytes that arrived before this
    /// call. If the closure is slow, the transfer is paused once about 1 MiB is waiting, so that the server has to
    /// slow down. When the request is retried, the closure receives the new body from its first byte.
    @discardableResult
    @preconcurrency
    public func stream(closure: (@Sendable (Data) -> Void)? = nil) -> Self {
        core.perform { core in
            guard var sink = core.sink as? DataSink else { return }
            sink.stream(to: closure)
            core.sink = sink
            if core.state.isSettled { core.releaseClosures() }
        }
        return self
    }
}
