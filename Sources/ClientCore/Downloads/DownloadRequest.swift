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

/// Options for moving a downloaded file to its destination.
public struct DownloadOptions: OptionSet, Sendable {
    /// The raw bits of the options.
    public let rawValue: UInt

    /// Creates options from raw bits.
    ///
    /// - Parameter rawValue: The raw bits of the options.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// Creates the directory of the destination and its parents if they are missing. Without this option, a missing
    /// directory is an error.
    public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)

    /// Replaces an existing file at the destination. At any time, the path leads to either the old file or the new one.
    /// Without this option, an existing file is an error. A directory is never replaced.
    public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)
}

extension SessionManager {
    /// Downloads a resource to a file.
    ///
    /// ```swift
    /// session.download("https://example.com/map.zip", keepingPartialFileAt: partialFile) { _, _ in
    ///     (destination, [.createIntermediateDirectories, .removePreviousFile])
    /// }
    /// .validate()
    /// .downloadProgress { print($0.fractionCompleted) }
    /// .response { print($0.destinationURL?.path ?? "", $0.error?.localizedDescription ?? "done") }
    /// ```
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `GET`, the only method with which a download can be resumed.
    ///   - parameters: The parameters that `encoding` adds to the request. Default: none.
    ///   - encoding: Encodes the parameters. Default: in the query for `GET`, `HEAD` and `DELETE`, in the body for
    ///     other methods.
    ///   - headers: Header fields. They override the session's. Default: none.
    ///   - partialFile: A file URL for the download while it is incomplete. A resume record is stored next to the file,
    ///     with the extension `.resume`. After the process has ended, the same call resumes the download if the server
    ///     still has the same version; see <doc:DownloadsAndUploads>. Default: `nil`, a temporary file.
    ///   - destination: Returns the location of the complete file. Default: `nil`. The file then stays where it
    ///     was written, and the caller must remove it.
    @discardableResult
    @preconcurrency
    public func download(
        _ url: any URLConvertible,
        method: HTTPMethod = .get,
        parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default,
        headers: HTTPHeaders? = nil,
        keepingPartialFileAt partialFile: URL? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        let plan = RequestPlan(original: Self.makeRequest(url, method, parameters, encoding, headers))
        return startDownload(plan, partialFile, destination)
    }

    /// Downloads the response of an existing request.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - partialFile: A file URL for the download while it is incomplete; see
    ///     ``download(_:method:parameters:encoding:headers:keepingPartialFileAt:to:)``. Default: `nil`, a temporary
    ///     file.
    ///   - destination: Returns the location of the complete file. Default: `nil`. The file then stays where it
    ///     was written, and the caller must remove it.
    @discardableResult
    @preconcurrency
    public func download(
        _ urlRequest: any URLRequestConvertible,
        keepingPartialFileAt partialFile: URL? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        startDownload(RequestPlan(urlRequest), partialFile, destination)
    }

    /// Resumes a download that was cancelled or interrupted, in this process or an earlier one.
    ///
    /// The request asks for the rest of the same version. If the server now has another version, the download starts
    /// over.
    ///
    /// The resume data contains the URL, but no header fields of the original request, because they may contain
    /// secrets. The session's adapter can add them.
    ///
    /// ```swift
    /// var response = await session.download("https://example.com/map.zip").validate().response()
    /// if let resumeData = response.resumeData {
    ///     response = await session.download(resumingWith: resumeData).validate().response()
    /// }
    /// print(response.temporaryURL?.path ?? "")
    /// ```
    ///
    /// - Parameters:
    ///   - resumeData: The `resumeData` of an earlier response.
    ///   - destination: Returns the location of the complete file. Default: `nil`. The file then stays where it
    ///     was written, and the caller must remove it.
    @discardableResult
    @preconcurrency
    public func download(
        resumingWith resumeData: Data,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        let record = Result { try ResumeRecord(data: resumeData) }
        var plan = RequestPlan(original: record.map { URLRequest(url: $0.url) })
        if let record = record.value {
            plan.makeSink = { DownloadSink(.resuming(record), to: destination) }
        }
        return start(plan, as: DownloadRequest.init)
    }

    private func startDownload(
        _ plan: RequestPlan,
        _ partialFile: URL?,
        _ destination: DownloadRequest.DownloadFileDestination?
    ) -> DownloadRequest {
        let origin = partialFile.map(DownloadSink.Origin.kept) ?? .temporary
        var plan = plan
        plan.makeSink = { DownloadSink(origin, to: destination) }
        return start(plan, as: DownloadRequest.init)
    }
}
