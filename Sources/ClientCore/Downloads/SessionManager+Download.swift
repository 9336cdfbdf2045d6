public import Foundation
internal import FoundationNetworking

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
