public import Foundation
public import FoundationNetworking

/// A request whose response body is written to a file. ``BodyRequest`` declares its handlers and checks.
public final class DownloadRequest: BodyRequest<URL>, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// Whether missing directories are created, and an existing file is replaced, when the file is moved.
    public typealias DownloadOptions = ClientCore.DownloadOptions

    /// A closure that returns the destination of the downloaded file. It is called once, on the request's queue,
    /// when the response is complete and has passed validation.
    ///
    /// - Parameters:
    ///   - temporaryURL: The current location of the file. The file is moved after the closure has returned.
    ///   - response: The head of the response.
    public typealias DownloadFileDestination =
        @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (
            destinationURL: URL, options: DownloadOptions
        )

    /// Returns a closure whose destination is in one of the user's directories, with the file name that the server
    /// suggests.
    ///
    /// The name comes from `Content-Disposition`, or else from the last path component of the URL. The name never leads
    /// out of the directory. The download fails if the directory does not exist, which is common on servers. In that
    /// case, write a closure that returns ``DownloadOptions/createIntermediateDirectories``.
    ///
    /// - Parameters:
    ///   - directory: The directory. Default: `Documents` in the user's home.
    ///   - domain: The domain in which Foundation looks for the directory. Default: the user's home.
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

    /// Data with which ``SessionManager/download(resumingWith:to:)`` resumes the download. Set when the request has
    /// failed, if the server supports resuming; otherwise `nil`.
    public var resumeData: Data? { core.snapshot.now.resumeData }

    /// Cancels the request. Its handlers receive `URLError.cancelled`. Does nothing if the request has
    /// finished. Returns immediately.
    ///
    /// - Parameter producingResumeData: Whether the received part of the file is kept, so that the response's
    ///   `resumeData` can resume the download. ``Request/cancel()`` keeps the part.
    @discardableResult
    public func cancel(producingResumeData: Bool) -> Self {
        core.perform { core in
            guard var sink = core.sink as? DownloadSink else { return }
            sink.keepsPartialFile = producingResumeData
            core.sink = sink
        }
        return cancel()
    }

    /// Alamofire 4's name for ``cancel(producingResumeData:)``.
    @discardableResult
    public func cancel(createResumeData: Bool) -> Self {
        cancel(producingResumeData: createResumeData)
    }
}
