public import Dispatch
public import Foundation

/// A request that sends data, a file, a stream or a form, and keeps the response's body in memory.
public final class UploadRequest: DataRequest, @unchecked Sendable {
    // Stores nothing; see Request.

    /// How much of the body was sent, in bytes on the wire; the total is -1 while it is unknown.
    public var uploadProgress: Progress { core.uploadProgress.progress }

    /// Calls a closure as the body is sent. Only the last closure counts.
    ///
    /// - Parameters:
    ///   - queue: Where it is called. Default: the session's ``SessionManager/completionQueue``. Calls that wait
    ///     there are joined into one.
    ///   - closure: Takes the request's ``uploadProgress``, which begins anew with another attempt.
    @discardableResult
    @preconcurrency
    public func uploadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        core.uploadProgress.tell(on: queue ?? completionQueue, closure)
        return self
    }
}
