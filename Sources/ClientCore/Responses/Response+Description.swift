internal import Foundation
internal import FoundationNetworking

extension DataResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var description: String { result.text }
}

extension DataResponse: CustomDebugStringConvertible {
    /// The request, the response, their bodies, the result and the timeline.
    ///
    /// Text bodies and the result are truncated to 2000 bytes. Other bodies are replaced by their size. The header
    /// fields of the request are omitted, because they may contain credentials.
    public var debugDescription: String {
        Sections(request, response, ["[Response Body]: \(BodyText.of(data))"], result.text, timeline).text
    }
}

extension DownloadResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var description: String { result.text }
}

extension DownloadResponse: CustomDebugStringConvertible {
    /// The request and its body, the head of the response, the files, the result and the timeline.
    ///
    /// The result is truncated to 2000 bytes, and so is the request's body if it is text. Any other body is replaced by
    /// its size. The header fields of the request are omitted, because they may contain credentials.
    public var debugDescription: String {
        let files = [
            "[TemporaryURL]: \(temporaryURL?.path ?? "none")",
            "[DestinationURL]: \(destinationURL?.path ?? "none")",
            "[ResumeData]: \(resumeData.map { "\($0.count) bytes" } ?? "none")",
        ]
        return Sections(request, response, files, result.text, timeline).text
    }
}

/// The sections of a debug description.
private struct Sections {
    let text: String

    init(
        _ request: URLRequest?,
        _ response: HTTPURLResponse?,
        _ body: [String],
        _ result: String,
        _ timeline: Timeline
    ) {
        let head = [
            "[Request]: \(request?.methodAndURL ?? "none")",
            "[Request Body]: \(BodyText.of(request?.httpBody))",
            "[Response]: \(response.map(Self.head) ?? "none")",
        ]
        let end = ["[Result]: \(BodyText.of(Data(result.utf8)))", "[Timeline]: \(timeline.debugDescription)"]
        text = (head + body + end).joined(separator: "\n")
    }

    /// Returns the status and the header fields. Values are quoted and escaped, because the server may send control
    /// characters.
    private static func head(of response: HTTPURLResponse) -> String {
        let fields = response.allHeaderFields
            .map { "  \($0.key): \("\($0.value)".debugDescription)" }
            .sorted()
        return (["\(response.statusCode)"] + fields).joined(separator: "\n")
    }
}

extension URLRequest {
    /// The method and the URL, for example `GET http://host/path`.
    var methodAndURL: String { "\(httpMethod ?? "GET") \(url?.absoluteString ?? "without a URL")" }
}

extension Result {
    fileprivate var text: String {
        switch self {
        case .success(let value): "SUCCESS: \(value)"
        case .failure(let error): "FAILURE: \(error)"
        }
    }
}
