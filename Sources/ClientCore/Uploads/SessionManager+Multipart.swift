public import Dispatch
public import Foundation
internal import FoundationNetworking

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
