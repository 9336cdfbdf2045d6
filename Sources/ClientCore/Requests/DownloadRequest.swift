public import Dispatch
public import Foundation
public import FoundationNetworking

/// A request whose response body is written to a file.
public final class DownloadRequest: Request, @unchecked Sendable {
    // Stores nothing; see Request.

    /// What may be done to make room for the file.
    public typealias DownloadOptions = ClientCore.DownloadOptions

    /// Says where the file goes. Called once, when the whole response has come and no validation refuses it,
    /// on the request's queue.
    ///
    /// - Parameters:
    ///   - temporaryURL: Where the file is. It is moved when the closure has returned.
    ///   - response: The head of the response.
    public typealias DownloadFileDestination =
        @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (
            destinationURL: URL, options: DownloadOptions
        )

    /// A destination in one of the user's directories, named as the server suggests.
    ///
    /// The name is `Content-Disposition`'s, else the URL's last part, and never leads out of the directory. On
    /// a server the directory is often not there: add ``DownloadOptions/createIntermediateDirectories`` by a
    /// closure of your own.
    ///
    /// - Parameters:
    ///   - directory: The directory. Default: `Documents` in the user's home.
    ///   - domain: Whose. Default: the user's.
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

    /// How far the response has come, in bytes on the wire, with those of earlier attempts that are continued;
    /// the total is -1 while it is unknown.
    public var progress: Progress { core.downloadProgress.progress }

    /// What continues the download, once it has failed and if the server lets us.
    public var resumeData: Data? { core.snapshot.now.resumeData }

    /// Ends the request, unless it has ended: its handlers get `URLError.cancelled`. Returns at once.
    ///
    /// - Parameter producingResumeData: Whether what has come is kept, to be continued with the response's
    ///   `resumeData`. ``Request/cancel()`` does.
    @discardableResult
    public func cancel(producingResumeData: Bool) -> Self {
        core.perform { core in
            guard var sink = core.sink as? DownloadSink else { return }
            sink.keepsPart = producingResumeData
            core.sink = sink
        }
        return cancel()
    }

    /// Calls a closure as the response comes in. Only the last closure counts.
    ///
    /// - Parameters:
    ///   - queue: Where it is called. Default: the session's ``SessionManager/completionQueue``. Calls that wait
    ///     there are joined into one.
    ///   - closure: Takes the request's ``progress``.
    @discardableResult
    @preconcurrency
    public func downloadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        core.downloadProgress.tell(on: queue ?? completionQueue, closure)
        return self
    }

    // MARK: Handlers

    /// Adds a handler for whatever comes of the request.
    ///
    /// Handlers are called in the order they were added. One added after the end is called all the same.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
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

    /// Adds a handler for what a serializer makes of the file.
    ///
    /// Each handler's serializer runs on a queue of the request's own, in the order they were added.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
    ///   - responseSerializer: Makes a value of the file, or says why there is none.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func response<Serializer: DownloadResponseSerializerProtocol>(
        queue: DispatchQueue? = nil,
        responseSerializer: Serializer,
        completionHandler: @escaping @Sendable (DownloadResponse<Serializer.SerializedObject>) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        let serialize = responseSerializer.serializeResponse
        whenFinished { outcome in
            // Made here and given away here: nobody else has it.
            nonisolated(unsafe) let response = DownloadResponse(outcome, serialize)
            queue.async { completionHandler(response) }
        }
        return self
    }

    /// Waits for whatever comes of the request. Cancelling the waiting task cancels the request.
    public func response() async -> DefaultDownloadResponse {
        await finished { DefaultDownloadResponse($0) }
    }

    /// Waits for what a serializer makes of the file. Cancelling the waiting task cancels the request.
    public func response<Serializer: DownloadResponseSerializerProtocol>(
        responseSerializer: Serializer
    ) async -> sending DownloadResponse<Serializer.SerializedObject> {
        let serialize = responseSerializer.serializeResponse
        return await finished { DownloadResponse($0, serialize) }
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

extension DownloadResponse {
    fileprivate init(
        _ outcome: RequestOutcome,
        _ serialize: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>
    ) {
        let response = outcome.response
        let file = outcome.body.destinationURL ?? outcome.body.temporaryURL
        let result = serialize(outcome.request, response, file, outcome.error)
        self.init(
            request: outcome.request,
            response: response,
            temporaryURL: outcome.body.temporaryURL,
            destinationURL: outcome.body.destinationURL,
            resumeData: outcome.body.resumeData,
            result: result,
            timeline: outcome.clock.timeline,
            metrics: outcome.metrics?.value
        )
    }
}
