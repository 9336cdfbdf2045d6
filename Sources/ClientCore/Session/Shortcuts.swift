public import Dispatch
public import Foundation

// The same calls without a session: they are the default session's.

/// The session class under the name that Alamofire 5 gives it.
public typealias Session = SessionManager

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The default session under the name that Alamofire 5 gives it.
public let AF = SessionManager.default

/// ``SessionManager/request(_:method:parameters:encoding:headers:)`` of the default session.
@discardableResult
public func request(
    _ url: any URLConvertible,
    method: HTTPMethod = .get,
    parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default,
    headers: HTTPHeaders? = nil
) -> DataRequest {
    SessionManager.default.request(
        url,
        method: method,
        parameters: parameters,
        encoding: encoding,
        headers: headers
    )
}

/// ``SessionManager/request(_:)`` of the default session.
@discardableResult
public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
    SessionManager.default.request(urlRequest)
}

/// ``SessionManager/download(_:method:parameters:encoding:headers:keepingPartialFileAt:to:)`` of the default
/// session.
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
    SessionManager.default.download(
        url,
        method: method,
        parameters: parameters,
        encoding: encoding,
        headers: headers,
        keepingPartialFileAt: partialFile,
        to: destination
    )
}

/// ``SessionManager/download(_:keepingPartialFileAt:to:)`` of the default session.
@discardableResult
@preconcurrency
public func download(
    _ urlRequest: any URLRequestConvertible,
    keepingPartialFileAt partialFile: URL? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(urlRequest, keepingPartialFileAt: partialFile, to: destination)
}

/// ``SessionManager/download(resumingWith:to:)`` of the default session.
@discardableResult
@preconcurrency
public func download(
    resumingWith resumeData: Data,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(resumingWith: resumeData, to: destination)
}

/// ``SessionManager/upload(_:to:method:headers:)-(Data,_,_,_)`` of the default session.
@discardableResult
public func upload(
    _ data: Data,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(data, to: url, method: method, headers: headers)
}

/// Sends data with a request that was made elsewhere, in the default session.
@discardableResult
public func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(data, with: urlRequest)
}

/// Sends a file in the default session.
@discardableResult
public func upload(
    _ fileURL: URL,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(fileURL, to: url, method: method, headers: headers)
}

/// Sends a file with a request that was made elsewhere, in the default session.
@discardableResult
public func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(fileURL, with: urlRequest)
}

/// Sends what a stream gives in the default session.
@discardableResult
public func upload(
    _ stream: sending InputStream,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(stream, to: url, method: method, headers: headers)
}

/// Sends what a stream gives with a request that was made elsewhere, in the default session.
@discardableResult
public func upload(
    _ stream: sending InputStream,
    with urlRequest: any URLRequestConvertible
) -> UploadRequest {
    SessionManager.default.upload(stream, with: urlRequest)
}

/// ``SessionManager/upload(multipartFormData:usingThreshold:to:method:headers:queue:encodingCompletion:)`` of
/// the default session.
@preconcurrency
public func upload(
    multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil,
    queue: DispatchQueue? = nil,
    encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
) {
    SessionManager.default.upload(
        multipartFormData: multipartFormData,
        usingThreshold: encodingMemoryThreshold,
        to: url,
        method: method,
        headers: headers,
        queue: queue,
        encodingCompletion: encodingCompletion
    )
}

/// ``SessionManager/upload(multipartFormData:usingThreshold:with:queue:encodingCompletion:)`` of the default
/// session.
@preconcurrency
public func upload(
    multipartFormData: @escaping @Sendable (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    with urlRequest: any URLRequestConvertible,
    queue: DispatchQueue? = nil,
    encodingCompletion: (@Sendable (SessionManager.MultipartFormDataEncodingResult) -> Void)?
) {
    SessionManager.default.upload(
        multipartFormData: multipartFormData,
        usingThreshold: encodingMemoryThreshold,
        with: urlRequest,
        queue: queue,
        encodingCompletion: encodingCompletion
    )
}

/// ``SessionManager/stream(withHostName:port:)`` of the default session.
@discardableResult
public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port)
}
