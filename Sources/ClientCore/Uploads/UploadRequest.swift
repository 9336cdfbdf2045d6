public import Dispatch
public import Foundation

/// A request that sends data, a file, a stream or a form, and keeps the response's body in memory.
public final class UploadRequest: DataRequest, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// The progress of sending the body, in bytes on the wire. The total is -1 while it is unknown.
    public var uploadProgress: Progress { report.progress }

    private var report: ProgressReport {
        guard let report = core.uploadProgress else { preconditionFailure("an upload without a body") }
        return report
    }

    /// Sets a closure that is called while the body is sent. A second call replaces the closure.
    ///
    /// - Parameters:
    ///   - queue: The queue that the closure is called on. Default: the session's
    ///     ``SessionManager/completionQueue``. If the queue is busy, several updates result in one call.
    ///   - closure: Receives the request's ``uploadProgress``, which starts over with each retry.
    @discardableResult
    @preconcurrency
    public func uploadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        report.setClosure(on: queue ?? completionQueue, closure)
        return self
    }
}
