public import Foundation
internal import FoundationNetworking

extension SessionManager {
    /// Uploads data. No `Content-Type` is added.
    ///
    /// ```swift
    /// let order = Data(#"{"product":17}"#.utf8)
    /// let headers = ["Content-Type": "application/json"]
    /// let upload = session.upload(order, to: "https://example.com/orders", headers: headers)
    /// print(try await upload.validate().string)
    /// ```
    ///
    /// - Parameters:
    ///   - data: The body.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `POST`.
    ///   - headers: Header fields, which override the session's. Default: none.
    @discardableResult
    public func upload(
        _ data: Data,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        startUpload(.data(data), Self.plan(url, method, headers))
    }

    /// Uploads data. `urlRequest` contains the URL, the method and the header fields.
    @discardableResult
    public func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        startUpload(.data(data), RequestPlan(urlRequest))
    }

    /// Uploads a file. No `Content-Type` is added.
    ///
    /// The file is read while it is sent, so it must not change until the request has ended. If its length changes, the
    /// request fails.
    ///
    /// ```swift
    /// session.upload(fileURL, to: "https://example.com/photos/1", method: .put)
    ///     .uploadProgress { print($0.fractionCompleted) }
    ///     .validate()
    ///     .response { print($0.error?.localizedDescription ?? "done") }
    /// ```
    ///
    /// - Parameters:
    ///   - fileURL: A regular file.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `POST`.
    ///   - headers: Header fields, which override the session's. Default: none.
    @discardableResult
    public func upload(
        _ fileURL: URL,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        startUpload(.file(fileURL), Self.plan(url, method, headers))
    }

    /// Uploads a file. `urlRequest` contains the URL, the method and the header fields.
    @discardableResult
    public func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
        startUpload(.file(fileURL), RequestPlan(urlRequest))
    }

    /// Uploads the content of a stream, in chunks (RFC 9112 §7.1). The stream is read on a separate thread.
    ///
    /// A stream can be read only once. If the request must be sent again, for a redirect or a retry,
    /// ``SessionDelegate/taskNeedNewBodyStream`` must return a new stream. Without a new stream, the request fails with
    /// `URLError.requestBodyStreamExhausted`. It also fails if libcurl must send the stream again to answer a
    /// challenge.
    ///
    /// - Parameters:
    ///   - stream: A stream that has not been opened. The session takes ownership.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `POST`.
    ///   - headers: Header fields, which override the session's. Default: none.
    @discardableResult
    public func upload(
        _ stream: sending InputStream,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil
    ) -> UploadRequest {
        startUpload(.stream(StreamBody(stream)), Self.plan(url, method, headers))
    }

    /// Uploads the content of a stream. `urlRequest` contains the URL, the method and the header fields.
    @discardableResult
    public func upload(
        _ stream: sending InputStream,
        with urlRequest: any URLRequestConvertible
    ) -> UploadRequest {
        startUpload(.stream(StreamBody(stream)), RequestPlan(urlRequest))
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
