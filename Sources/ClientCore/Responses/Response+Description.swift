internal import Foundation
internal import FoundationNetworking

extension DataResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var description: String { result.text }
}

extension DataResponse: CustomDebugStringConvertible {
    /// The request, the response, their bodies, the result and the timeline. Bodies that are text, and the
    /// result, are cut after 2000 bytes; of other bodies the size is told. Fields of the request are left
    /// out, because they may hold credentials.
    public var debugDescription: String {
        Sections(request, response, ["[Response Body]: \(BodyText.of(data))"], result.text, timeline).text
    }
}

extension DownloadResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var description: String { result.text }
}

extension DownloadResponse: CustomDebugStringConvertible {
    /// The request, the response, the files, the result and the timeline. A request's body that is text,
    /// and the result, are cut after 2000 bytes; of other bodies the size is told. Fields of the request
    /// are left out, because they may hold credentials.
    public var debugDescription: String {
        let files = [
            "[TemporaryURL]: \(temporaryURL?.path ?? "none")",
            "[DestinationURL]: \(destinationURL?.path ?? "none")",
            "[ResumeData]: \(resumeData.map { "\($0.count) bytes" } ?? "none")",
        ]
        return Sections(request, response, files, result.text, timeline).text
    }
}

/// What a response is described by.
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
            "[Request]: \(request?.nameInTexts ?? "none")",
            "[Request Body]: \(BodyText.of(request?.httpBody))",
            "[Response]: \(response.map(Self.head) ?? "none")",
        ]
        let end = ["[Result]: \(BodyText.of(Data(result.utf8)))", "[Timeline]: \(timeline.debugDescription)"]
        text = (head + body + end).joined(separator: "\n")
    }

    /// The status and the fields, which are quoted because the server may have put anything into them.
    private static func head(of response: HTTPURLResponse) -> String {
        let fields = response.allHeaderFields
            .map { "  \($0.key): \("\($0.value)".debugDescription)" }
            .sorted()
        return (["\(response.statusCode)"] + fields).joined(separator: "\n")
    }
}

extension URLRequest {
    /// `GET http://host/path`.
    var nameInTexts: String { "\(httpMethod ?? "GET") \(url?.absoluteString ?? "without a URL")" }
}

extension Result {
    fileprivate var text: String {
        switch self {
        case .success(let value): "SUCCESS: \(value)"
        case .failure(let error): "FAILURE: \(error)"
        }
    }
}
