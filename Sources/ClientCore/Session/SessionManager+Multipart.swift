public import Dispatch
public import Foundation
internal import FoundationNetworking

extension SessionManager {
    /// A form longer than that is sent from a file, unless told otherwise: 10,000,000 bytes.
    public static let multipartFormDataEncodingMemoryThreshold: UInt64 = 10_000_000

    /// What became of the encoding of a form.
    public enum MultipartFormDataEncodingResult: Sendable {
        /// The form is being sent.
        ///
        /// - Parameters:
        ///   - request: The request.
        ///   - streamingFromDisk: Whether the form was too long to be kept in memory.
        ///   - streamFileURL: The temporary file it is sent from, which is removed when the request
        ///     has ended and a handler of it is called, or with the request.
        case success(request: UploadRequest, streamingFromDisk: Bool, streamFileURL: URL?)
        /// The form could not be made, or the request.
        case failure(any Error)
    }

    /// Sends a form (RFC 7578).
    ///
    /// - Parameters:
    ///   - multipartFormData: Adds the parts. Called once, on a background thread.
    ///   - encodingMemoryThreshold: Above how many bytes the form is written to a temporary file first.
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `POST`.
    ///   - headers: Header fields, which win over the session's. Default none.
    ///   - queue: Where `encodingCompletion` is called. Default: ``completionQueue``.
    ///   - encodingCompletion: Takes the request, or why there is none. Called once.
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

    /// Sends a form with a request that was made elsewhere.
    ///
    /// - Parameters:
    ///   - multipartFormData: Adds the parts. Called once, on a background thread.
    ///   - encodingMemoryThreshold: Above how many bytes the form is written to a temporary file first.
    ///   - urlRequest: The request. It gets the form's `Content-Type`.
    ///   - queue: Where `encodingCompletion` is called. Default: ``completionQueue``.
    ///   - encodingCompletion: Takes the request, or why there is none. Called once.
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
        DispatchQueue.global(qos: .utility).async {
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
            let file = TemporaryFile(URL(fileURLWithPath: try TemporaryFiles.newPath()))
            try form.writeEncodedData(to: file.url)
            let upload = startUpload(.file(file.url, file), plan)
            return .success(request: upload, streamingFromDisk: true, streamFileURL: file.url)
        } catch {
            return .failure(error)
        }
    }
}
