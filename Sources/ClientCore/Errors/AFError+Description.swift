public import Foundation
internal import NetwatchTransport

extension AFError: LocalizedError {
    /// A description of the error in English that contains the invalid value.
    public var errorDescription: String? { text }

    private var text: String {
        switch self {
        case .invalidURL(let url):
            "The URL `\(url)` is not valid" + (Self.fault(of: "\(url)").map { ": \($0)" } ?? "")
        case .urlRequestValidationFailed(let reason): "The request was not sent: \(reason.text)"
        case .parameterEncodingFailed(let reason): "The parameters cannot be encoded: \(reason.text)"
        case .multipartEncodingFailed(let reason): "The multipart body cannot be made: \(reason.text)"
        case .responseValidationFailed(let reason): "The response was refused: \(reason.text)"
        case .responseSerializationFailed(let reason): "The response cannot be serialized: \(reason.text)"
        case .downloadedFileMoveFailed(let error, let source, let destination):
            "The download could not be moved from \(source.path) to \(destination.path): \(error.inWords)"
        case .downloadResumeFailed(let reason): "The download cannot be continued: \(reason.text)"
        case .fileFailed(let error, let url): "\(url.path): \(error.inWords)"
        case .serverTrustEvaluationFailed(let reason): "The server is not trusted: \(reason.text)"
        case .sessionConfigurationRefused(let property): "The session's configuration is refused: \(property)"
        case .sessionDeinitialized: "The session was dropped before the request had ended."
        }
    }

    /// Returns the syntax error of the URL, as far as it can be determined.
    private static func fault(of url: String) -> String? {
        guard !url.isEmpty else { return "it is empty" }
        guard let parsed = URL(string: url) else { return "it cannot be parsed" }
        return URL.fault(ofHost: parsed.host(percentEncoded: false) ?? "", port: parsed.port)
    }
}

extension AFError.URLRequestValidationFailureReason {
    fileprivate var text: String {
        switch self {
        case .invalidMethod(let method):
            "\(method.debugDescription) is not a method that a server can be asked for"
        case .invalidHeader(let name, let value):
            HTTPFieldValue.refusal(name, value)
        case .bodyDataInGETRequest(let data): "a GET or HEAD request has a body, of \(data.count) bytes"
        case .unsupportedScheme(let url):
            "the scheme \((url.scheme ?? "").debugDescription) is neither http nor https"
        case .invalidOption(let name, let value, let accepted): "\(name) is \(value); accepted: \(accepted)"
        case .missingHost(let url): "the URL \(url.absoluteString.debugDescription) names no host"
        }
    }
}

extension AFError.ParameterEncodingFailureReason {
    fileprivate var text: String {
        switch self {
        case .missingURL: "the request has no URL"
        case .jsonEncodingFailed(let error): "as JSON: \(error.inWords)"
        case .propertyListEncodingFailed(let error): "as a property list: \(error.inWords)"
        case .customEncodingFailed(let error): error.inWords
        }
    }
}

extension AFError.MultipartEncodingFailureReason {
    fileprivate var text: String {
        switch self {
        case .bodyPartURLInvalid(let url): "\(url) is not a file URL"
        case .bodyPartFilenameInvalid(let url): "\(url) has no file name"
        case .bodyPartFileNotReachable(let url): "\(url.path) does not exist or may not be read"
        case .bodyPartFileNotReachableWithError(let url, let error): "\(url.path): \(error.inWords)"
        case .bodyPartFileIsDirectory(let url): "\(url.path) is a directory"
        case .bodyPartFileSizeNotAvailable(let url): "\(url.path) is not a regular file"
        case .bodyPartFileSizeQueryFailedWithError(let url, let error): "\(url.path): \(error.inWords)"
        case .bodyPartInputStreamCreationFailed(let url): "\(url.path) could not be opened"
        case .outputStreamCreationFailed(let url): "\(url.path) could not be created"
        case .outputStreamFileAlreadyExists(let url): "\(url.path) exists"
        case .outputStreamURLInvalid(let url): "\(url) is not a file URL"
        case .outputStreamWriteFailed(let error): "writing it failed: \(error.inWords)"
        case .inputStreamReadFailed(let error): "reading a part failed: \(error.inWords)"
        case .bodyPartHeaderInvalid(let name, let value):
            "\(value.debugDescription) cannot be the \(name) of a part"
        }
    }
}

extension AFError.ResponseValidationFailureReason {
    fileprivate var text: String {
        switch self {
        case .dataFileNil: "there is no file"
        case .dataFileReadFailed(let url): "\(url.path) could not be read"
        case .missingContentType(let acceptable):
            "it has no content type, and \(acceptable.joined(separator: ", ")) was asked for"
        case .unacceptableContentType(let acceptable, let type):
            "its content type is \(type), and \(acceptable.joined(separator: ", ")) was asked for"
        case .unacceptableStatusCode(let code): "its status is \(code)"
        }
    }
}

extension AFError.ResponseSerializationFailureReason {
    fileprivate var text: String {
        switch self {
        case .inputDataNil: "there is no response data"
        case .inputDataNilOrZeroLength: "there is no response data, or it is empty"
        case .inputFileNil: "there is no file"
        case .inputFileReadFailed(let url): "\(url.path) could not be read"
        case .stringSerializationFailed(let encoding): "it is no text in the encoding \(encoding)"
        case .jsonSerializationFailed(let error): "it is no JSON: \(error.inWords)"
        case .propertyListSerializationFailed(let error): "it is no property list: \(error.inWords)"
        case .decodingFailed(let error): "it could not be decoded: \(error.inWords)"
        }
    }
}

extension AFError.DownloadResumeFailureReason {
    fileprivate var text: String {
        switch self {
        case .resumeDataInvalid(let why): "the resume data is not usable: \(why)"
        case .partialFileMissing(let url): "\(url.path) is gone, or shorter than it was"
        case .partialFileInUse(let url): "another request is writing to \(url.path)"
        case .rangeAnswerInvalid(let why): "the server's answer is not usable: \(why)"
        }
    }
}

extension Error {
    /// The error's localized description if it has one, otherwise its `description`. `localizedDescription` of an
    /// error without a localized text contains only its type's name.
    fileprivate var inWords: String {
        (self as? any LocalizedError)?.errorDescription ?? "\(self)"
    }
}
