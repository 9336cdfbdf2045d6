public import Foundation

/// Errors that are netwatch's own. What the network does wrong is a `URLError`; see
/// ``Swift/Error/transferFailure``.
public enum AFError: Error {
    /// Why parameters could not be put into a request.
    public enum ParameterEncodingFailureReason: Sendable {
        /// The request has no URL to append them to.
        case missingURL
        /// They cannot be written as JSON; Foundation's error, or ``InvalidJSONObject``, is underneath.
        case jsonEncodingFailed(error: any Error)
        /// They cannot be written as a property list.
        case propertyListEncodingFailed(error: any Error)
        /// They cannot be written in another way; that encoding's error is underneath.
        case customEncodingFailed(error: any Error)
    }

    /// Why a multipart body could not be made.
    public enum MultipartEncodingFailureReason: Sendable {
        /// The URL of a part is no file URL.
        case bodyPartURLInvalid(url: URL)
        /// The file name, or the part's name, cannot be derived from the URL.
        case bodyPartFilenameInvalid(in: URL)
        /// There is no file at the URL, or it may not be read.
        case bodyPartFileNotReachable(at: URL)
        /// The file could not be looked at; the system's error is underneath.
        case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
        /// A directory cannot be a part.
        case bodyPartFileIsDirectory(at: URL)
        /// The file has no size, a pipe or a device for example.
        case bodyPartFileSizeNotAvailable(at: URL)
        /// The file's size could not be read.
        case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
        /// The file could not be opened.
        case bodyPartInputStreamCreationFailed(for: URL)
        /// The file that the body is written to could not be created.
        case outputStreamCreationFailed(for: URL)
        /// The file that the body is to be written to exists.
        case outputStreamFileAlreadyExists(at: URL)
        /// The URL that the body is to be written to is no file URL.
        case outputStreamURLInvalid(url: URL)
        /// Writing the body failed.
        case outputStreamWriteFailed(error: any Error)
        /// Reading a part failed, or gave more or fewer bytes than were announced.
        case inputStreamReadFailed(error: any Error)
        /// A name, file name or content type of a part cannot be written into its header.
        case bodyPartHeaderInvalid(name: String, value: String)
    }

    /// Why a request was not sent as it is.
    public enum URLRequestValidationFailureReason: Sendable {
        /// The method is no token of RFC 9110 §5.6.2, or is `CONNECT`, which only a proxy understands.
        case invalidMethod(String)
        /// The name is no token, the value contains a line break or NUL, or the field is libcurl's to set.
        case invalidHeader(name: String, value: String)
        /// The method is `GET` or `HEAD`, and there is a body.
        case bodyDataInGETRequest(Data)
        /// The scheme is neither `http` nor `https`.
        case unsupportedScheme(URL)
        /// The URL names no host.
        case missingHost(URL)
        /// One of the request's ``RequestOptions`` is out of range.
        case invalidOption(name: String, value: String, accepted: String)
    }

    /// Why a response was refused.
    public enum ResponseValidationFailureReason: Sendable {
        /// The response was to be a file, and there is none.
        case dataFileNil
        /// The file that the response was written to could not be read.
        case dataFileReadFailed(at: URL)
        /// The response has no content type, and any would not do.
        case missingContentType(acceptableContentTypes: [String])
        /// The response's content type is none of those.
        case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
        /// The response's status is none of those that were asked for.
        case unacceptableStatusCode(code: Int)
    }

    /// Why a response could not be turned into the value that was asked for.
    public enum ResponseSerializationFailureReason: Sendable {
        /// There was no response to take data from.
        case inputDataNil
        /// There was no response to take data from, or its body is empty.
        case inputDataNilOrZeroLength
        /// There is no file to take data from.
        case inputFileNil
        /// The file that the response was written to could not be read.
        case inputFileReadFailed(at: URL)
        /// The body is no text in that encoding.
        case stringSerializationFailed(encoding: String.Encoding)
        /// The body is no JSON.
        case jsonSerializationFailed(error: any Error)
        /// The body is no property list.
        case propertyListSerializationFailed(error: any Error)
        /// The body could not be decoded as the type that was asked for.
        case decodingFailed(error: any Error)
    }

    /// Why a download was not continued.
    public enum DownloadResumeFailureReason: Sendable {
        /// The data is no resume record of this or an earlier version.
        case resumeDataInvalid(String)
        /// The file with what had been received is gone, or is shorter than the record says.
        case partialFileMissing(at: URL)
        /// Another request, of this process or another, is writing to the file.
        case partialFileInUse(at: URL)
        /// The server's answer to the request for the rest contradicts itself or the record.
        case rangeAnswerInvalid(String)
    }

    /// The URL cannot be made.
    case invalidURL(url: any URLConvertible)
    /// The request was refused before anything was sent.
    case urlRequestValidationFailed(reason: URLRequestValidationFailureReason)
    /// The parameters could not be put into the request.
    case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
    /// The multipart body could not be made.
    case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
    /// The response was refused by ``DataRequest/validate()`` or its like.
    case responseValidationFailed(reason: ResponseValidationFailureReason)
    /// The response could not be turned into the value that was asked for.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason)
    /// The downloaded file could not be moved to its destination. It is at `source` still.
    case downloadedFileMoveFailed(error: any Error, source: URL, destination: URL)
    /// The download could not be continued where it had ended.
    case downloadResumeFailed(reason: DownloadResumeFailureReason)
    /// The file that is to be sent, or was to be written, could not be.
    case fileFailed(error: any Error, url: URL)
    /// The session's configuration asks for what this client does not do and must not leave out silently.
    case sessionConfigurationRefused(property: String)
    /// The server was not trusted, or its policy trusts none, so nothing was sent.
    case serverTrustEvaluationFailed(reason: ServerTrustFailureReason)
    /// The request's last ``SessionManager`` reference was dropped before the request had ended. Keep the
    /// session for as long as its requests are to run.
    case sessionDeinitialized
}

/// A value that JSON has no way to write, such as `nan`, a date, or a dictionary whose keys are no texts.
public struct InvalidJSONObject: Error, Sendable, CustomStringConvertible {
    /// Where the value is, from the outside in: `"foo", "2"`.
    public let path: [String]
    /// What the value is.
    public let value: String

    /// - Parameters:
    ///   - path: Where the value is, from the outside in.
    ///   - value: What the value is.
    public init(path: [String], value: String) {
        self.path = path
        self.value = value
    }

    /// `foo.2: nan is not JSON`.
    public var description: String {
        (path.isEmpty ? "" : path.joined(separator: ".") + ": ") + "\(value) is not JSON"
    }
}
