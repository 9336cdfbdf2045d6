public import Foundation

// What an error is and carries, without a switch.

extension AFError {
    /// Whether the URL could not be made.
    public var isInvalidURLError: Bool {
        if case .invalidURL = self { true } else { false }
    }

    /// Whether the request was refused before anything was sent.
    public var isURLRequestValidationError: Bool {
        if case .urlRequestValidationFailed = self { true } else { false }
    }

    /// Whether the parameters could not be put into the request.
    public var isParameterEncodingError: Bool {
        if case .parameterEncodingFailed = self { true } else { false }
    }

    /// Whether the multipart body could not be made.
    public var isMultipartEncodingError: Bool {
        if case .multipartEncodingFailed = self { true } else { false }
    }

    /// Whether the response was refused.
    public var isResponseValidationError: Bool {
        if case .responseValidationFailed = self { true } else { false }
    }

    /// Whether the response could not be turned into a value.
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

    /// Whether the server could not be trusted.
    public var isServerTrustEvaluationError: Bool {
        if case .serverTrustEvaluationFailed = self { true } else { false }
    }

    /// Whether the request's session was dropped.
    public var isSessionDeinitializedError: Bool {
        if case .sessionDeinitialized = self { true } else { false }
    }
}

extension AFError {
    /// What the URL could not be made of.
    public var urlConvertible: (any URLConvertible)? {
        if case .invalidURL(let url) = self { url } else { nil }
    }

    /// The file or URL that is to blame.
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
        default: nil
        }
    }

    /// The error that this one was made of.
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

    /// The content types that would have done.
    public var acceptableContentTypes: [String]? {
        switch self {
        case .responseValidationFailed(.missingContentType(let acceptable)): acceptable
        case .responseValidationFailed(.unacceptableContentType(let acceptable, _)): acceptable
        default: nil
        }
    }

    /// The content type that did not do.
    public var responseContentType: String? {
        if case .responseValidationFailed(.unacceptableContentType(_, let type)) = self { type } else { nil }
    }

    /// The status that did not do.
    public var responseCode: Int? {
        if case .responseValidationFailed(.unacceptableStatusCode(let code)) = self { code } else { nil }
    }

    /// The encoding that the body is not in.
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
