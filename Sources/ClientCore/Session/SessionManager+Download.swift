public import Foundation
internal import FoundationNetworking

extension SessionManager {
    /// Downloads to a file.
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `GET`, the only one that can be continued.
    ///   - parameters: What `encoding` puts into the request. Default none.
    ///   - encoding: Default: into the query, or into the body of a method that has one.
    ///   - headers: Header fields, which win over the session's. Default none.
    ///   - partialFile: A file URL where the download is kept while it comes in, with a record of it beside
    ///     (`.resume`). If the process ends, the same call goes on where it was, provided that the server has
    ///     the same version still; see <doc:DownloadsAndUploads>. Default `nil`: a temporary file.
    ///   - destination: Where the whole file goes. Default `nil`: it stays where it came in, and is yours to
    ///     remove.
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
        let plan = RequestPlan(original: Self.made(url, method, parameters, encoding, headers))
        return startDownload(plan, partialFile, destination)
    }

    /// Downloads what a request that was made elsewhere asks for.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - partialFile: Where the download is kept while it comes in; see
    ///     ``download(_:method:parameters:encoding:headers:keepingPartialFileAt:to:)``.
    ///   - destination: Where the whole file goes. Default `nil`: it stays where it came in.
    @discardableResult
    @preconcurrency
    public func download(
        _ urlRequest: any URLRequestConvertible,
        keepingPartialFileAt partialFile: URL? = nil,
        to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
        startDownload(RequestPlan(urlRequest), partialFile, destination)
    }

    /// Continues a download that was cancelled or interrupted, in this process or an earlier one.
    ///
    /// The server is asked for the rest of the version that was begun. If it has another one by now, the file
    /// begins anew. The request has the record's URL and none of the first one's header fields, which may
    /// have been secrets: an adapter can add them.
    ///
    /// - Parameters:
    ///   - resumeData: The response's `resumeData`.
    ///   - destination: Where the whole file goes. Default `nil`: it stays where it came in.
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
