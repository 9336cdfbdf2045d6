internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension DataResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var description: String { result.debugDescription }
}

extension DataResponse: CustomDebugStringConvertible {
    /// The request, the response, their bodies, the result and the timeline.
    ///
    /// Text bodies and the result are truncated to 2000 bytes. Other bodies are replaced by their size. The header
    /// fields of the request are omitted, because they may contain credentials. Secrets in the URL and in the header
    /// fields of the response are replaced by `REDACTED`.
    public var debugDescription: String {
        Sections(
            request,
            response,
            ["[Response Body]: \(BodyText.of(data))"],
            result.debugDescription,
            timeline
        ).text
    }
}

extension DownloadResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error.
    public var description: String { result.debugDescription }
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
        return Sections(request, response, files, result.debugDescription, timeline).text
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

    /// Returns the status and the header fields without secrets. Values are quoted and escaped, because the server may
    /// send control characters.
    private static func head(of response: HTTPURLResponse) -> String {
        let secrets = CurlSecrets(isRedacting: true)
        let fields = response.allHeaderFields
            .map { secrets.field(.init("\($0.key)", "\($0.value)")) }
            .map { "  \($0.name): \($0.value.debugDescription)" }
            .sorted()
        return (["\(response.statusCode)"] + fields).joined(separator: "\n")
    }
}

extension URLRequest {
    /// The method and the URL without secrets, for example `GET http://host/path`.
    var methodAndURL: String {
        "\(httpMethod ?? "GET") \(url.map(\.textWithoutSecrets) ?? "without a URL")"
    }
}
