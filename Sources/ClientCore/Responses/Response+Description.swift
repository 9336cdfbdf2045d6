internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

extension BodyResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error. Without a serialized value, `SUCCESS: ` and the size of
    /// the body in memory, or the path of the file. In text and decoded JSON, secrets are replaced as in
    /// ``debugDescription``.
    public var description: String {
        guard Value.self == Void.self, result.isSuccess else { return result.text(response) }
        let data = parts.body.data.map { "\($0.count) bytes" } ?? "no data"
        return "SUCCESS: \(isFile ? parts.body.file?.path ?? "no file" : data)"
    }

    private var isFile: Bool { Content.self == URL.self }
}

extension BodyResponse: CustomDebugStringConvertible {
    /// The request, the response, their bodies or the downloaded file, the result and the timeline.
    ///
    /// Text bodies and the result are truncated to 2000 bytes. Other bodies are replaced by their size. The header
    /// fields of the request are omitted, because they may contain credentials. Secrets in the URL, in the header
    /// fields of the response, and in bodies that are forms or JSON are replaced by `REDACTED`. JSON that is incomplete
    /// or invalid, other bodies, and values of the program's own types are shown as they are.
    public var debugDescription: String {
        let response = response
        let data = BodyText.of(parts.body.data, contentType: response?.contentType)
        let body = isFile ? Sections.files(parts.body) : ["[Response Body]: \(data)"]
        return Sections(request, response, body, description, timeline).text
    }
}

extension Result {
    /// `SUCCESS: ` and the value without known secrets, or `FAILURE: ` and the error.
    fileprivate func text(_ response: HTTPURLResponse?) -> String {
        guard case .success(let value) = self else { return debugDescription }
        let secrets = CurlSecrets(isRedacting: true)
        guard let text = value as? String else {
            return "SUCCESS: \(secrets.replacingKnownSecrets(in: value))"
        }
        return "SUCCESS: \(secrets.replacingKnownSecrets(in: text, contentType: response?.contentType))"
    }
}

extension HTTPURLResponse {
    fileprivate var contentType: String? { value(forHTTPHeaderField: "Content-Type") }
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
        let requestType = request?.value(forHTTPHeaderField: "Content-Type")
        let head = [
            "[Request]: \(request?.methodAndURL ?? "none")",
            "[Request Body]: \(BodyText.of(request?.httpBody, contentType: requestType))",
            "[Response]: \(response.map(Self.head) ?? "none")",
        ]
        let end = ["[Result]: \(BodyText.of(Data(result.utf8)))", "[Timeline]: \(timeline.debugDescription)"]
        text = (head + body + end).joined(separator: "\n")
    }

    /// Returns the lines about the files of a download.
    static func files(_ body: ResponseBody) -> [String] {
        [
            "[TemporaryURL]: \(body.temporaryURL?.path ?? "none")",
            "[DestinationURL]: \(body.destinationURL?.path ?? "none")",
            "[ResumeData]: \(body.resumeData.map { "\($0.count) bytes" } ?? "none")",
        ]
    }

    /// Returns the status and the header fields without secrets. Values are quoted and escaped, because the server
    /// chooses them.
    private static func head(of response: HTTPURLResponse) -> String {
        let secrets = CurlSecrets(isRedacting: true)
        let fields = response.allHeaderFields
            .map { secrets.field(.init("\($0.key)", "\($0.value)")) }
            .map { "  \($0.name): \($0.value.printableLiteral)" }
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
