internal import Foundation
public import FoundationNetworking

extension QueueRequest {
    /// Creates a queue's request from a `URLRequest`, with its method, URL, header fields and `httpBody`.
    ///
    /// The cache policy, the timeout and other properties for `URLSession` have no counterpart. `Content-Length` is
    /// omitted, because the client sets it.
    ///
    /// - Throws: ``QueueError``: `invalidURL` if the request has no URL, `bodyUnavailable` if it has a body stream,
    ///   `invalidOption` if its cache policy is `returnCacheDataDontLoad`, which forbids sending it. A stream can be
    ///   read only once; upload it with ``OfflineQueue/appendToBody(_:_:at:for:)`` instead.
    public init(_ request: URLRequest) throws(QueueError) {
        guard request.httpBodyStream == nil else {
            throw QueueError(
                .bodyUnavailable,
                "the request has a body stream, which cannot be stored; set `httpBody` instead"
            )
        }
        try self.init(request, body: .data(request.httpBody ?? Data()))
    }

    /// Creates a queue's request from a `URLRequest`, with another body.
    init(_ request: URLRequest, body: Body) throws(QueueError) {
        guard let url = request.url else { throw QueueError(.invalidURL, "the request has no URL") }
        guard request.cachePolicy != .returnCacheDataDontLoad else {
            let words = "the cache policy `returnCacheDataDontLoad` forbids sending the request"
            throw QueueError(.invalidOption, words)
        }
        let fields = request.allHTTPHeaderFields ?? [:]
        self.init(
            method: request.httpMethod ?? "GET",
            url: url.absoluteString,
            headers: fields.filter { $0.key.lowercased() != "content-length" }
                .sorted { $0.key < $1.key }
                .map { Header(name: $0.key, value: $0.value) },
            body: body
        )
    }
}

extension URLRequest {
    /// Creates a `URLRequest` from a queue's request. Fields of the same name are joined with a comma.
    ///
    /// - Throws: ``QueueError``: `invalidURL` if Foundation does not accept the URL, `bodyUnavailable` if the body is
    ///   an upload of a queue, `bodyFileUnusable` if the body's file cannot be read.
    public init(_ request: QueueRequest) throws(QueueError) {
        try self.init(method: request.method, url: request.url, headers: request.headers, body: nil)
        switch request.body {
        case .data(let data): httpBody = data.isEmpty ? nil : data
        case .file(let path):
            guard let stream = InputStream(fileAtPath: path), FileManager.default.isReadableFile(atPath: path)
            else {
                throw QueueError(.bodyFileUnusable, "the file \(quoted(path)) cannot be read", path: path)
            }
            httpBodyStream = stream
        case .staged(let id, _):
            throw QueueError(
                .bodyUnavailable,
                "the body is the upload \(quoted(id)) of a queue; only that queue can send it"
            )
        }
    }
}
