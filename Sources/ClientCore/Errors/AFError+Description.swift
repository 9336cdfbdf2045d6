public import Foundation
internal import NetwatchEventLoop
internal import NetwatchTransport

extension AFError: LocalizedError, CustomStringConvertible {
    /// A description of the error in English. It contains the invalid value, if there is one. Secrets in URLs are
    /// omitted or replaced by `REDACTED`.
    public var errorDescription: String? { description }

    /// The same as ``errorDescription``. Without it, Swift would print the associated values, whose URLs and header
    /// fields may contain secrets.
    public var description: String {
        switch self {
        case .invalidURL(let url):
            "The URL `\(RedactedURL.text(ofUnchecked: "\(url)"))` is not valid"
                + (Self.fault(of: "\(url)").map { ": \($0)" } ?? "")
        case .urlRequestValidationFailed(let reason): "The request was not sent: \(reason.text)"
        case .parameterEncodingFailed(let reason): "The parameters cannot be encoded\(reason.text)"
        case .multipartEncodingFailed(let reason): "The multipart body cannot be encoded: \(reason.text)"
        case .responseValidationFailed(let reason): "The response failed validation: \(reason.text)"
        case .responseSerializationFailed(let reason): "The response cannot be serialized: \(reason.text)"
        case .downloadedFileMoveFailed(let error, let source, let destination):
            "The download could not be moved from \(source.path) to \(destination.path): \(error.message)"
        case .downloadResumeFailed(let reason): "The download cannot be resumed: \(reason.text)"
        case .fileFailed(let error, let url): "The file \(url.path) cannot be used: \(error.message)"
        case .redirectRefused(let reason): "The redirect is not followed: \(reason.text)"
        case .serverTrustEvaluationFailed(let reason): "The server is not trusted: \(reason.text)"
        case .sessionConfigurationRefused(let property): "The session's configuration is refused: \(property)"
        case .sessionDeinitialized:
            "The session was released before the request had ended; retain it until its requests have ended"
        }
    }

    /// Returns a description of what is wrong with the URL; `nil` if that cannot be determined.
    private static func fault(of url: String) -> String? {
        guard !url.isEmpty else { return "it is empty" }
        guard let parsed = URL(string: url) else { return "it cannot be parsed" }
        return URL.fault(ofHost: parsed.host(percentEncoded: false) ?? "", port: parsed.port)
    }
}

// The reasons that contain a URL or a header field have their own description, because programs also print them alone.

extension AFError.URLRequestValidationFailureReason: CustomStringConvertible {
    /// The reason in English, without secrets in URLs and header fields.
    public var description: String { text }

    fileprivate var text: String {
        switch self {
        case .invalidMethod(let method): HTTPRequestRules.refusal(ofMethod: method)
        case .invalidHeader(let name, let value): HTTPRequestRules.refusal(ofHeader: name, value)
        case .bodyDataInGETRequest(let data):
            "a GET or HEAD request must not have a body (\(data.count) bytes)"
        case .unsupportedScheme(let url):
            "the scheme \((url.scheme ?? "").printableLiteral) is not supported; http and https are accepted"
        case .invalidOption(let name, let value, let accepted): "\(name) is \(value); accepted: \(accepted)"
        case .missingHost(let url): "the URL \(url.textWithoutSecrets.printableLiteral) has no host"
        }
    }
}

extension AFError.ParameterEncodingFailureReason {
    /// The end of the sentence "The parameters cannot be encoded".
    fileprivate var text: String {
        switch self {
        case .missingURL: ": the request has no URL"
        case .jsonEncodingFailed(let error): " as JSON: \(error.message)"
        case .propertyListEncodingFailed(let error): " as a property list: \(error.message)"
        case .customEncodingFailed(let error): ": \(error.message)"
        }
    }
}

extension AFError.MultipartEncodingFailureReason: CustomStringConvertible {
    /// The reason in English, without secrets in URLs.
    public var description: String { text }

    fileprivate var text: String {
        switch self {
        case .bodyPartURLInvalid(let url): "\(url.textWithoutSecrets) is not a file URL"
        case .bodyPartFilenameInvalid(let url): "\(url.textWithoutSecrets) has no file name"
        case .bodyPartFileNotReachable(let url): "\(url.path) does not exist or is not readable"
        case .bodyPartFileNotReachableWithError(let url, let error): "\(url.path): \(error.message)"
        case .bodyPartFileIsDirectory(let url): "\(url.path) is a directory"
        case .bodyPartFileSizeNotAvailable(let url): "\(url.path) is not a regular file"
        case .bodyPartFileSizeQueryFailedWithError(let url, let error):
            "the size of \(url.path) cannot be read: \(error.message)"
        case .bodyPartInputStreamCreationFailed(let url): "\(url.path) cannot be opened"
        case .outputStreamCreationFailed(let url): "\(url.path) cannot be created"
        case .outputStreamFileAlreadyExists(let url): "\(url.path) already exists"
        case .outputStreamURLInvalid(let url): "\(url.textWithoutSecrets) is not a file URL"
        case .outputStreamWriteFailed(let error): "writing failed: \(error.message)"
        case .inputStreamReadFailed(let error): "reading a part failed: \(error.message)"
        case .bodyPartHeaderInvalid(let name, let value):
            "\(value.printableLiteral) is not a valid \(name) of a part"
        }
    }
}

extension AFError.ResponseValidationFailureReason {
    fileprivate var text: String {
        switch self {
        case .dataFileNil: "the download has no file"
        case .dataFileReadFailed(let url): "\(url.path) could not be read"
        case .missingContentType(let acceptable):
            "it has no content type; accepted: \(acceptable.joined(separator: ", "))"
        case .unacceptableContentType(let acceptable, let type):
            "its content type is \(type); accepted: \(acceptable.joined(separator: ", "))"
        case .unacceptableStatusCode(let code): "its status is \(code), which is not acceptable"
        }
    }
}

extension AFError.ResponseSerializationFailureReason {
    fileprivate var text: String {
        switch self {
        case .inputDataNil: "there is no response data"
        case .inputDataNilOrZeroLength: "there is no response data, or it is empty"
        case .inputFileNil: "the download has no file"
        case .inputFileReadFailed(let url): "\(url.path) could not be read"
        case .stringSerializationFailed(let encoding):
            "the body is not valid text in the encoding \(encoding)"
        case .jsonSerializationFailed(let error): "the body is not valid JSON: \(error.message)"
        case .propertyListSerializationFailed(let error):
            "the body is not a valid property list: \(error.message)"
        case .decodingFailed(let error): "the body could not be decoded: \(error.message)"
        }
    }
}

extension AFError.RedirectRefusalReason: CustomStringConvertible {
    /// The reason in English, with the origins instead of the URLs.
    public var description: String { text }

    fileprivate var text: String {
        switch self {
        case .insecure(let source, let target):
            "it leads from \(source.originText) to \(target.originText), where the request is not encrypted"
        case .bodyToOtherOrigin(let source, let target):
            "it would send the body from \(source.originText) to another origin, \(target.originText)"
        }
    }
}

extension URL {
    /// The scheme, host and port. The rest of the URL may contain secrets.
    fileprivate var originText: String {
        "\(scheme ?? "")://\(host ?? "")" + (port.map { ":\($0)" } ?? "")
    }
}

extension AFError.DownloadResumeFailureReason {
    fileprivate var text: String {
        switch self {
        case .resumeDataInvalid(let why): "the resume data is invalid: \(why)"
        case .partialFileMissing(let url):
            "the partial file \(url.path) is missing, or shorter than the resume data says"
        case .partialFileInUse(let url): "another request is writing to \(url.path)"
        case .rangeResponseInvalid(let why): "the server's response is invalid: \(why)"
        }
    }
}

extension Error {
    /// The error's `errorDescription` if it has one, otherwise its `description`. `localizedDescription` is not used,
    /// because for an error without a localized text it contains only the name of the error's type.
    fileprivate var message: String {
        (self as? any LocalizedError)?.errorDescription ?? "\(self)"
    }
}
