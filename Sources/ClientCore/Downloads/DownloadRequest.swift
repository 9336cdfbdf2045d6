public import Dispatch
public import Foundation
public import FoundationNetworking

/// A request whose response body is written to a file.
public final class DownloadRequest: Request, @unchecked Sendable {
    // Stores nothing: see the comment in Request on `@unchecked Sendable`.

    /// What may be created or removed when the file is moved to its destination.
    public typealias DownloadOptions = ClientCore.DownloadOptions

    /// Returns the file's destination. Called once on the request's queue, when the response is complete and
    /// has passed validation.
    ///
    /// - Parameters:
    ///   - temporaryURL: The file's current location. The file is moved after the closure has returned.
    ///   - response: The head of the response.
    public typealias DownloadFileDestination =
        @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (
            destinationURL: URL, options: DownloadOptions
        )

    /// Returns a destination in one of the user's directories, with the file name that the server suggests.
    ///
    /// The name comes from `Content-Disposition`, or else from the last path component of the URL. It never
    /// leads out of the directory. On a server the directory often does not exist: in that case, write a
    /// closure that returns ``DownloadOptions/createIntermediateDirectories``.
    ///
    /// - Parameters:
    ///   - directory: The directory. Default: `Documents` in the user's home.
    ///   - domain: The domain of the directory. Default: the user's.
    public class func suggestedDownloadDestination(
        for directory: FileManager.SearchPathDirectory = .documentDirectory,
        in domain: FileManager.SearchPathDomainMask = .userDomainMask
    ) -> DownloadFileDestination {
        { temporaryURL, response in
            let directories = FileManager.default.urls(for: directory, in: domain)
            guard let directory = directories.first else { return (temporaryURL, []) }
            return (directory.appendingPathComponent(SuggestedFilename.of(response)), [])
        }
    }

    /// The number of response bytes received on the wire, including those of earlier attempts that are resumed.
    /// The total is -1 while it is unknown.
    public var progress: Progress { core.downloadProgress.progress }

    /// Data that resumes the download. Set once the request has failed, if the server supports resuming.
    public var resumeData: Data? { core.snapshot.now.resumeData }

    /// Cancels the request. Its handlers receive `URLError.cancelled`. Does nothing if the request has
    /// finished. Returns immediately.
    ///
    /// - Parameter producingResumeData: Whether the received part is kept so that the response's `resumeData`
    ///   can resume it. ``Request/cancel()`` keeps it.
    @discardableResult
    public func cancel(producingResumeData: Bool) -> Self {
        core.perform { core in
            guard var sink = core.sink as? DownloadSink else { return }
            sink.keepsPartialFile = producingResumeData
            core.sink = sink
        }
        return cancel()
    }

    /// Sets a closure that is called as the response arrives. A second call replaces the closure.
    ///
    /// - Parameters:
    ///   - queue: The queue that the closure is called on. Default: the session's
    ///     ``SessionManager/completionQueue``. If the queue is busy, several updates result in one call.
    ///   - closure: Receives the request's ``progress``.
    @discardableResult
    @preconcurrency
    public func downloadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        core.downloadProgress.setClosure(on: queue ?? completionQueue, closure)
        return self
    }

    // MARK: Handlers

    /// Adds a handler for the response, whether the request succeeds or fails.
    ///
    /// Handlers are called in the order they were added. A handler added after the request has finished is
    /// still called.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func response(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (DefaultDownloadResponse) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        whenFinished { outcome in
            let response = DefaultDownloadResponse(outcome)
            queue.async { completionHandler(response) }
        }
        return self
    }

    /// Waits for the response, whether the request succeeds or fails. Cancelling the waiting task cancels the
    /// request.
    public func response() async -> DefaultDownloadResponse {
        await finished { DefaultDownloadResponse($0) }
    }
}

extension DefaultDownloadResponse {
    fileprivate init(_ outcome: RequestOutcome) {
        self.init(
            request: outcome.request,
            response: outcome.response,
            temporaryURL: outcome.body.temporaryURL,
            destinationURL: outcome.body.destinationURL,
            resumeData: outcome.body.resumeData,
            error: outcome.error,
            timeline: outcome.clock.timeline,
            metrics: outcome.metrics?.value
        )
    }
}
