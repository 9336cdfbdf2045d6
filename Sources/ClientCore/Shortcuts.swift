public import Dispatch
public import Foundation

// Names of Alamofire 5, and free functions with the names of Alamofire 4 that call the default session.

/// The session class under its Alamofire 5 name.
public typealias Session = SessionManager

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The default session under its Alamofire 5 name.
public let AF = SessionManager.default

/// Calls ``SessionManager/request(_:method:parameters:encoding:headers:)`` of the default session.
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

/// Calls ``SessionManager/request(_:)`` of the default session.
@discardableResult
public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
    SessionManager.default.request(urlRequest)
}

/// Calls ``SessionManager/download(_:method:parameters:encoding:headers:keepingPartialFileAt:to:)`` of the
/// default session.
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

/// Calls ``SessionManager/download(_:keepingPartialFileAt:to:)`` of the default session.
@discardableResult
@preconcurrency
public func download(
    _ urlRequest: any URLRequestConvertible,
    keepingPartialFileAt partialFile: URL? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(urlRequest, keepingPartialFileAt: partialFile, to: destination)
}

/// Calls ``SessionManager/download(resumingWith:to:)`` of the default session.
@discardableResult
@preconcurrency
public func download(
    resumingWith resumeData: Data,
    to destination: DownloadRequest.DownloadFileDestination? = nil
) -> DownloadRequest {
    SessionManager.default.download(resumingWith: resumeData, to: destination)
}

/// Calls ``SessionManager/upload(_:to:method:headers:)-(Data,_,_,_)`` of the default session.
@discardableResult
public func upload(
    _ data: Data,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(data, to: url, method: method, headers: headers)
}

/// Uploads data in the default session. `urlRequest` contains the URL, the method and the header fields.
@discardableResult
public func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(data, with: urlRequest)
}

/// Uploads a file in the default session.
@discardableResult
public func upload(
    _ fileURL: URL,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(fileURL, to: url, method: method, headers: headers)
}

/// Uploads a file in the default session. `urlRequest` contains the URL, the method and the header fields.
@discardableResult
public func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(fileURL, with: urlRequest)
}

/// Uploads the content of a stream in the default session.
@discardableResult
public func upload(
    _ stream: sending InputStream,
    to url: any URLConvertible,
    method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil
) -> UploadRequest {
    SessionManager.default.upload(stream, to: url, method: method, headers: headers)
}

/// Uploads the content of a stream in the default session. `urlRequest` contains the URL, the method and the header
/// fields.
@discardableResult
public func upload(
    _ stream: sending InputStream,
    with urlRequest: any URLRequestConvertible
) -> UploadRequest {
    SessionManager.default.upload(stream, with: urlRequest)
}

/// Calls ``SessionManager/upload(multipartFormData:usingThreshold:to:method:headers:queue:encodingCompletion:)``
/// of the default session.
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

/// Calls ``SessionManager/upload(multipartFormData:usingThreshold:with:queue:encodingCompletion:)`` of the
/// default session.
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

/// Calls ``SessionManager/stream(withHostName:port:)`` of the default session.
@discardableResult
public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port)
}
