public import Dispatch
public import Foundation
internal import FoundationNetworking

/// A request that sends data, a file, a stream or a form, and keeps the response's body in memory.
public final class UploadRequest: DataRequest, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// The progress of sending the body, in bytes on the wire. The total is -1 while it is unknown.
    public var uploadProgress: Progress { report.progress }

    private var report: ProgressReport {
        guard let report = core.uploadProgress else { preconditionFailure("an upload without a body") }
        return report
    }

    /// Sets a closure that is called while the body is sent. A second call replaces the closure.
    ///
    /// - Parameters:
    ///   - queue: The queue that the closure is called on. Default: the session's
    ///     ``SessionManager/completionQueue``. If the queue is busy, several updates result in one call.
    ///   - closure: Receives the request's ``uploadProgress``, which starts over with each retry.
    @discardableResult
    @preconcurrency
    public func uploadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        report.setClosure(on: queue ?? completionQueue, closure)
        return self
    }
}

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

extension SessionManager {
    /// The default of the length above which an encoded form is sent from a temporary file: 10,000,000 bytes.
    public static let multipartFormDataEncodingMemoryThreshold: UInt64 = 10_000_000

    /// The result of encoding a form.
    public enum MultipartFormDataEncodingResult: Sendable {
        /// The form is being sent.
        ///
        /// - Parameters:
        ///   - request: The request.
        ///   - streamingFromDisk: Whether the form is sent from a temporary file, because it exceeds the threshold.
        ///   - streamFileURL: The temporary file; `nil` if the form is sent from memory. The file is removed when the
        ///     first handler of the finished request is called, or when the request is released.
        case success(request: UploadRequest, streamingFromDisk: Bool, streamFileURL: URL?)
        /// The form could not be encoded, or the request could not be created.
        case failure(any Error)
    }

    /// Uploads a form (RFC 7578).
    ///
    /// ```swift
    /// session.upload(
    ///     multipartFormData: { form in
    ///         form.append(Data("Ada".utf8), withName: "name")
    ///         form.append(photoURL, withName: "photo")
    ///     },
    ///     to: "https://example.com/members"
    /// ) { result in
    ///     switch result {
    ///     case .success(let request, _, _): request.validate().responseString { print($0.result) }
    ///     case .failure(let error): print(error.localizedDescription)
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - multipartFormData: Adds the parts. Called once, on a background thread.
    ///   - encodingMemoryThreshold: The length in bytes above which the form is first written to a temporary file.
    ///     Default: ``multipartFormDataEncodingMemoryThreshold``.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `POST`.
    ///   - headers: Header fields, which override the session's. Default: none.
    ///   - queue: The queue that `encodingCompletion` is called on. Default: ``completionQueue``.
    ///   - encodingCompletion: Called once, with the request or an error.
    @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = multipartFormDataEncodingMemoryThreshold,
        to url: any URLConvertible,
        method: HTTPMethod = .post,
        headers: HTTPHeaders? = nil,
        queue: DispatchQueue? = nil,
        encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let plan = Self.plan(url, method, headers)
        startUpload(multipartFormData, encodingMemoryThreshold, plan, queue, encodingCompletion)
    }

    /// Uploads a form. `urlRequest` contains the URL, the method and the header fields.
    ///
    /// - Parameters:
    ///   - multipartFormData: Adds the parts. Called once, on a background thread.
    ///   - encodingMemoryThreshold: The length in bytes above which the form is first written to a temporary file.
    ///     Default: ``multipartFormDataEncodingMemoryThreshold``.
    ///   - urlRequest: The request. Its `Content-Type` is replaced by that of the form.
    ///   - queue: The queue that `encodingCompletion` is called on. Default: ``completionQueue``.
    ///   - encodingCompletion: Called once, with the request or an error.
    @preconcurrency
    public func upload(
        multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
        usingThreshold encodingMemoryThreshold: UInt64 = multipartFormDataEncodingMemoryThreshold,
        with urlRequest: any URLRequestConvertible,
        queue: DispatchQueue? = nil,
        encodingCompletion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let plan = RequestPlan(urlRequest)
        startUpload(multipartFormData, encodingMemoryThreshold, plan, queue, encodingCompletion)
    }

    private func startUpload(
        _ fill: @escaping @Sendable (MultipartFormData) -> Void,
        _ threshold: UInt64,
        _ plan: RequestPlan,
        _ queue: DispatchQueue?,
        _ completion: (@Sendable (MultipartFormDataEncodingResult) -> Void)?
    ) {
        let queue = queue ?? completionQueue
        SerialQueue(context.threads).async {
            let result = self.encode(fill, threshold, plan)
            queue.async { completion?(result) }
        }
    }

    private func encode(
        _ fill: (MultipartFormData) -> Void,
        _ threshold: UInt64,
        _ plan: RequestPlan
    ) -> MultipartFormDataEncodingResult {
        do {
            let form = MultipartFormData()
            fill(form)
            var (request, plan) = (try plan.original.get(), plan)
            request.setValue(form.contentType, forHTTPHeaderField: "Content-Type")
            plan.original = .success(request)
            guard form.encodedLength > threshold else {
                let upload = startUpload(.data(try form.encode()), plan)
                return .success(request: upload, streamingFromDisk: false, streamFileURL: nil)
            }
            let file = try form.writeTemporaryFile()
            let upload = startUpload(.file(file.url, file), plan)
            return .success(request: upload, streamingFromDisk: true, streamFileURL: file.url)
        } catch {
            return .failure(error)
        }
    }
}
