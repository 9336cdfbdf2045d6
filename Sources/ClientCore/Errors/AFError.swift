public import Foundation

/// The errors that netwatch itself detects. Network errors are `URLError`s; see ``Swift/Error/transferFailure``.
public enum AFError: Error {
    /// The reasons why parameters cannot be encoded.
    public enum ParameterEncodingFailureReason: Sendable {
        /// The request has no URL to append the parameters to.
        case missingURL
        /// The parameters cannot be encoded as JSON. The underlying error is Foundation's or an
        /// ``InvalidJSONObject``.
        case jsonEncodingFailed(error: any Error)
        /// The parameters cannot be encoded as a property list.
        case propertyListEncodingFailed(error: any Error)
        /// A custom encoding threw the given error, or ``URLEncoding`` failed with ``ParametersTooDeep``.
        case customEncodingFailed(error: any Error)
    }

    /// The reasons why a multipart body cannot be created.
    public enum MultipartEncodingFailureReason: Sendable {
        /// The URL of a part is not a file URL.
        case bodyPartURLInvalid(url: URL)
        /// The URL of a part has no file name.
        case bodyPartFilenameInvalid(in: URL)
        /// The file of a part does not exist or is not readable. netwatch itself always reports
        /// ``bodyPartFileNotReachableWithError(atURL:error:)``, which contains the system's error.
        case bodyPartFileNotReachable(at: URL)
        /// The file of a part does not exist or is not readable. The error is the system's.
        case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
        /// The URL of a part is a directory.
        case bodyPartFileIsDirectory(at: URL)
        /// The file of a part has no size, for example because it is a pipe or a device.
        case bodyPartFileSizeNotAvailable(at: URL)
        /// The size of a part's file cannot be read. The error is the system's.
        case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
        /// The file of a part cannot be opened.
        case bodyPartInputStreamCreationFailed(for: URL)
        /// The output file cannot be created.
        case outputStreamCreationFailed(for: URL)
        /// The output file already exists.
        case outputStreamFileAlreadyExists(at: URL)
        /// The URL of the output file is not a file URL.
        case outputStreamURLInvalid(url: URL)
        /// Writing the body failed.
        case outputStreamWriteFailed(error: any Error)
        /// Reading a part failed, or the part is shorter or longer than the length with which it was added.
        case inputStreamReadFailed(error: any Error)
        /// A name, file name or content type of a part is not valid in a header field.
        case bodyPartHeaderInvalid(name: String, value: String)
    }

    /// The reasons why a request is rejected before it is sent.
    public enum URLRequestValidationFailureReason: Sendable {
        /// The method is not a token (RFC 9110 §5.6.2), or is `CONNECT`, which only proxies support.
        case invalidMethod(String)
        /// A header field is invalid: the name is not a token (RFC 9110 §5.6.2), the value contains a control
        /// character other than tab, libcurl sets the field itself, or the field contradicts the body.
        case invalidHeader(name: String, value: String)
        /// The method is `GET` or `HEAD`, and the request has a body.
        case bodyDataInGETRequest(Data)
        /// The scheme is neither `http` nor `https`.
        case unsupportedScheme(URL)
        /// The URL has no host.
        case missingHost(URL)
        /// One of the request's ``RequestOptions``, or its `timeoutInterval`, is out of range. `accepted` describes
        /// the range.
        case invalidOption(name: String, value: String, accepted: String)
    }

    /// The reasons why validation rejects a response.
    public enum ResponseValidationFailureReason: Sendable {
        /// The download has no file.
        case dataFileNil
        /// The downloaded file cannot be read.
        case dataFileReadFailed(at: URL)
        /// The response has no content type, and `*/*` is not accepted.
        case missingContentType(acceptableContentTypes: [String])
        /// The response's content type is not accepted.
        case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
        /// The response's status is not accepted.
        case unacceptableStatusCode(code: Int)
    }

    /// The reasons why a response cannot be serialized.
    public enum ResponseSerializationFailureReason: Sendable {
        /// There is no response data.
        case inputDataNil
        /// There is no response data, or it is empty.
        case inputDataNilOrZeroLength
        /// The download has no file.
        case inputFileNil
        /// The downloaded file cannot be read.
        case inputFileReadFailed(at: URL)
        /// The body is not valid text in this encoding.
        case stringSerializationFailed(encoding: String.Encoding)
        /// The body is not valid JSON.
        case jsonSerializationFailed(error: any Error)
        /// The body is not a valid property list.
        case propertyListSerializationFailed(error: any Error)
        /// The body cannot be decoded as the requested type.
        case decodingFailed(error: any Error)
    }

    /// The reasons why a download cannot be continued.
    public enum DownloadResumeFailureReason: Sendable {
        /// The resume data is invalid, or was written by a newer version of netwatch. The text describes the error.
        case resumeDataInvalid(String)
        /// The partial file is missing, or is shorter than the resume data says.
        case partialFileMissing(at: URL)
        /// Another request of this or another process is writing to the file.
        case partialFileInUse(at: URL)
        /// The server's response to the request for the remaining bytes is inconsistent or contradicts the resume
        /// data. The text describes the error.
        case rangeResponseInvalid(String)
    }

    /// The reasons why a redirect is not followed.
    public enum RedirectRefusalReason: Sendable {
        /// The redirect leads from https to http. ``RedirectOptions/insecure`` permits this, unless the host has a
        /// ``ServerTrustPolicy``.
        case insecure(from: URL, to: URL)
        /// The redirect would send the request's body to another origin. ``RedirectOptions/crossOriginData`` permits
        /// this.
        case bodyToOtherOrigin(from: URL, to: URL)
    }

    /// The value is not a valid URL.
    case invalidURL(url: any URLConvertible)
    /// The request was rejected before anything was sent.
    case urlRequestValidationFailed(reason: URLRequestValidationFailureReason)
    /// The parameters cannot be encoded.
    case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
    /// The multipart body cannot be created.
    case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
    /// ``BodyRequest/validate()`` or another validation rejected the response.
    case responseValidationFailed(reason: ResponseValidationFailureReason)
    /// The response cannot be serialized.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason)
    /// The downloaded file cannot be moved to its destination. It stays at `source`.
    case downloadedFileMoveFailed(error: any Error, source: URL, destination: URL)
    /// The download cannot be continued.
    case downloadResumeFailed(reason: DownloadResumeFailureReason)
    /// A file to upload cannot be read, or a file for a download cannot be created, read or written.
    case fileFailed(error: any Error, url: URL)
    /// The session's configuration has a property that netwatch does not support and must not ignore. `property` names
    /// it, with the reason.
    case sessionConfigurationRefused(property: String)
    /// The redirect was not followed, because it would send data unencrypted or to another origin.
    case redirectRefused(reason: RedirectRefusalReason)
    /// The server is not trusted, or the policy of its host cannot trust any server. The request was not sent.
    case serverTrustEvaluationFailed(reason: ServerTrustFailureReason)
    /// The last reference to the request's ``SessionManager`` was released before the request had ended. Retain the
    /// session until its requests have ended.
    case sessionDeinitialized
}

/// The error for a value that JSON cannot represent, such as `nan`, a date, or a dictionary whose keys are not
/// strings.
public struct InvalidJSONObject: Error, Sendable, CustomStringConvertible {
    /// The keys and indexes that lead to the value, outermost first: `"foo", "2"`.
    public let path: [String]
    /// A description of the value.
    public let value: String

    /// Creates the error for a value.
    ///
    /// - Parameters:
    ///   - path: The keys and indexes that lead to the value, outermost first.
    ///   - value: A description of the value.
    public init(path: [String], value: String) {
        self.path = path
        self.value = value
    }

    /// The path and the value: `foo.2: nan is not JSON`.
    public var description: String {
        (path.isEmpty ? "" : path.joined(separator: ".") + ": ") + "\(value) is not JSON"
    }
}

extension AFError {
    static func invalidOption(_ name: String, _ value: String, accepted: String) -> AFError {
        .urlRequestValidationFailed(reason: .invalidOption(name: name, value: value, accepted: accepted))
    }
}

// Properties for programs that need only one detail of an error, so that they need no switch over the cases.

extension AFError {
    /// Whether a value is not a valid URL.
    public var isInvalidURLError: Bool {
        if case .invalidURL = self { true } else { false }
    }

    /// Whether the request was rejected before anything was sent.
    public var isURLRequestValidationError: Bool {
        if case .urlRequestValidationFailed = self { true } else { false }
    }

    /// Whether the parameters could not be encoded.
    public var isParameterEncodingError: Bool {
        if case .parameterEncodingFailed = self { true } else { false }
    }

    /// Whether the multipart body could not be created.
    public var isMultipartEncodingError: Bool {
        if case .multipartEncodingFailed = self { true } else { false }
    }

    /// Whether validation rejected the response.
    public var isResponseValidationError: Bool {
        if case .responseValidationFailed = self { true } else { false }
    }

    /// Whether the response could not be serialized.
    public var isResponseSerializationError: Bool {
        if case .responseSerializationFailed = self { true } else { false }
    }

    /// Whether the downloaded file could not be moved to its destination.
    public var isDownloadedFileMoveError: Bool {
        if case .downloadedFileMoveFailed = self { true } else { false }
    }

    /// Whether the download could not be continued.
    public var isDownloadResumeError: Bool {
        if case .downloadResumeFailed = self { true } else { false }
    }

    /// Whether a redirect was refused.
    public var isRedirectRefusedError: Bool {
        if case .redirectRefused = self { true } else { false }
    }

    /// Whether the server was not trusted.
    public var isServerTrustEvaluationError: Bool {
        if case .serverTrustEvaluationFailed = self { true } else { false }
    }

    /// Whether the request's session was released before the request had ended.
    public var isSessionDeinitializedError: Bool {
        if case .sessionDeinitialized = self { true } else { false }
    }
}

extension AFError {
    /// The value that could not be converted to a URL; `nil` for other errors.
    public var urlConvertible: (any URLConvertible)? {
        if case .invalidURL(let url) = self { url } else { nil }
    }

    /// The file or URL that caused the error; `nil` if there is none. A value that is not a URL is ``urlConvertible``.
    public var url: URL? {
        switch self {
        case .multipartEncodingFailed(let reason): reason.url
        case .responseValidationFailed(.dataFileReadFailed(let url)): url
        case .responseSerializationFailed(.inputFileReadFailed(let url)): url
        case .urlRequestValidationFailed(.unsupportedScheme(let url)): url
        case .urlRequestValidationFailed(.missingHost(let url)): url
        case .downloadResumeFailed(.partialFileMissing(let url)),
            .downloadResumeFailed(.partialFileInUse(let url)):
            url
        case .fileFailed(_, let url): url
        case .redirectRefused(.insecure(_, let url)), .redirectRefused(.bodyToOtherOrigin(_, let url)): url
        default: nil
        }
    }

    /// The error that caused this one, such as Foundation's; `nil` if there is none.
    public var underlyingError: (any Error)? {
        switch self {
        case .parameterEncodingFailed(.jsonEncodingFailed(let error)): error
        case .parameterEncodingFailed(.propertyListEncodingFailed(let error)): error
        case .parameterEncodingFailed(.customEncodingFailed(let error)): error
        case .multipartEncodingFailed(let reason): reason.underlyingError
        case .responseSerializationFailed(let reason): reason.underlyingError
        case .downloadedFileMoveFailed(let error, _, _): error
        case .fileFailed(let error, _): error
        case .serverTrustEvaluationFailed(let reason): reason.output?.transferFailure
        default: nil
        }
    }

    /// The content types that validation accepts; `nil` if validation did not reject the content type.
    public var acceptableContentTypes: [String]? {
        switch self {
        case .responseValidationFailed(.missingContentType(let acceptable)): acceptable
        case .responseValidationFailed(.unacceptableContentType(let acceptable, _)): acceptable
        default: nil
        }
    }

    /// The content type that validation rejected; `nil` for other errors.
    public var responseContentType: String? {
        if case .responseValidationFailed(.unacceptableContentType(_, let type)) = self { type } else { nil }
    }

    /// The status that validation rejected; `nil` for other errors.
    public var responseCode: Int? {
        if case .responseValidationFailed(.unacceptableStatusCode(let code)) = self { code } else { nil }
    }

    /// The text encoding in which the body is not valid; `nil` for other errors.
    public var failedStringEncoding: String.Encoding? {
        if case .responseSerializationFailed(.stringSerializationFailed(let encoding)) = self {
            encoding
        } else {
            nil
        }
    }
}

extension AFError.MultipartEncodingFailureReason {
    fileprivate var url: URL? {
        switch self {
        case .bodyPartURLInvalid(let url), .bodyPartFilenameInvalid(let url),
            .bodyPartFileNotReachable(let url), .bodyPartFileNotReachableWithError(let url, _),
            .bodyPartFileIsDirectory(let url), .bodyPartFileSizeNotAvailable(let url),
            .bodyPartFileSizeQueryFailedWithError(let url, _), .bodyPartInputStreamCreationFailed(let url),
            .outputStreamCreationFailed(let url), .outputStreamFileAlreadyExists(let url),
            .outputStreamURLInvalid(let url):
            url
        case .outputStreamWriteFailed, .inputStreamReadFailed, .bodyPartHeaderInvalid: nil
        }
    }

    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .bodyPartFileNotReachableWithError(_, let error),
            .bodyPartFileSizeQueryFailedWithError(_, let error), .outputStreamWriteFailed(let error),
            .inputStreamReadFailed(let error):
            error
        default: nil
        }
    }
}

extension AFError.ResponseSerializationFailureReason {
    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .jsonSerializationFailed(let error), .propertyListSerializationFailed(let error),
            .decodingFailed(let error):
            error
        default: nil
        }
    }
}
