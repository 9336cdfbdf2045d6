public import Foundation
internal import FoundationNetworking

extension SessionManager {
    /// Downloads to a file.
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `GET`, the only one that can be resumed.
    ///   - parameters: The parameters that `encoding` adds to the request. Default: none.
    ///   - encoding: Default: in the query, or in the body for methods that have one.
    ///   - headers: Header fields. They override the session's. Default: none.
    ///   - partialFile: A file URL that holds the download while it is incomplete. A record of it is stored
    ///     next to it (`.resume`). If the process ends, the same call resumes the download, provided that the
    ///     server still has the same version; see <doc:DownloadsAndUploads>. Default: `nil`, a temporary file.
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
    ///   - partialFile: A file URL that holds the download while it is incomplete; see
    ///     ``download(_:method:parameters:encoding:headers:keepingPartialFileAt:to:)``.
    ///   - destination: Returns the location of the complete file. Default: `nil`. The file then stays where it
    ///     was written.
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
    /// The server is asked for the rest of the same version. If it now has another version, the download starts
    /// over. The request uses the URL of the record, but no header fields of the original request, because they
    /// may have been secrets. An adapter can add them.
    ///
    /// - Parameters:
    ///   - resumeData: The response's `resumeData`.
    ///   - destination: Returns the location of the complete file. Default: `nil`. The file then stays where it
    ///     was written.
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
