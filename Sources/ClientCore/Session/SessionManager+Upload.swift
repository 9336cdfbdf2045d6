public import Foundation
internal import FoundationNetworking

extension SessionManager {
    /// Sends data. No `Content-Type` is added.
    ///
    /// - Parameters:
    ///   - data: The body.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `POST`.
    ///   - headers: Header fields, which win over the session's. Default none.
    @discardableResult
    public func upload(
        _ data: Data,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        startUpload(.data(data), Self.plan(url, method, headers))
    }

    /// Sends data with a request that was made elsewhere.
    @discardableResult
    public func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        startUpload(.data(data), RequestPlan(urlRequest))
    }

    /// Sends a file, read as it is sent. No `Content-Type` is added.
    ///
    /// The file has to stay as it is until the request has ended: one that comes to another length meanwhile
    /// fails it.
    ///
    /// - Parameters:
    ///   - fileURL: A regular file.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `POST`.
    ///   - headers: Header fields, which win over the session's. Default none.
    @discardableResult
    public func upload(
        _ fileURL: URL,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        startUpload(.file(fileURL), Self.plan(url, method, headers))
    }

    /// Sends a file with a request that was made elsewhere.
    @discardableResult
    public func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        startUpload(.file(fileURL), RequestPlan(urlRequest))
    }

    /// Sends what a stream gives, in chunks (RFC 9112 §7.1), on a thread of its own.
    ///
    /// A stream can be read once: a request that would have to be sent again, for a challenge, a redirect or a
    /// retrier, fails with `URLError.requestBodyStreamExhausted`.
    ///
    /// - Parameters:
    ///   - stream: A stream that nobody has opened. It is the session's from now on.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `POST`.
    ///   - headers: Header fields, which win over the session's. Default none.
    @discardableResult
    public func upload(
        _ stream: sending InputStream,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        startUpload(.stream(OneTimeBody(stream)), Self.plan(url, method, headers))
    }

    /// Sends what a stream gives with a request that was made elsewhere.
    @discardableResult
    public func upload(
        _ stream: sending InputStream,
        with urlRequest: any URLRequestConvertible
    ) -> UploadRequest {
        startUpload(.stream(OneTimeBody(stream)), RequestPlan(urlRequest))
    }

    func startUpload(_ body: UploadBody, _ plan: RequestPlan) -> UploadRequest {
        var plan = plan
        plan.upload = body
        return start(plan, as: UploadRequest.init)
    }

    static func plan(
        _ url: any URLConvertible,
        _ method: HTTPMethod,
        _ headers: HTTPHeaders?
    ) -> RequestPlan {
        RequestPlan(original: Result { try URLRequest(url: url, method: method, headers: headers) })
    }
}
