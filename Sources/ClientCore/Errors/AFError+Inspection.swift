public import Foundation

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
