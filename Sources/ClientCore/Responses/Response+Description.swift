internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

extension DataResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error. In text and decoded JSON, secrets are replaced as in
    /// ``debugDescription``.
    public var description: String { result.text(response) }
}

extension DataResponse: CustomDebugStringConvertible {
    /// The request, the response, their bodies, the result and the timeline.
    ///
    /// Text bodies and the result are truncated to 2000 bytes. Other bodies are replaced by their size. The header
    /// fields of the request are omitted, because they may contain credentials. Secrets in the URL, in the header
    /// fields of the response, and in bodies that are forms or JSON are replaced by `REDACTED`. JSON that is incomplete
    /// or invalid, other bodies, and values of the program's own types are shown as they are.
    public var debugDescription: String {
        let body = ["[Response Body]: \(BodyText.of(data, contentType: response?.contentType))"]
        return Sections(request, response, body, description, timeline).text
    }
}

extension DownloadResponse: CustomStringConvertible {
    /// `SUCCESS: ` and the value, or `FAILURE: ` and the error. In text and decoded JSON, secrets are replaced as in
    /// ``debugDescription``.
    public var description: String { result.text(response) }
}

extension DownloadResponse: CustomDebugStringConvertible {
    /// The request and its body, the head of the response, the files, the result and the timeline.
    ///
    /// The result is truncated to 2000 bytes, and so is the request's body if it is text. Any other body is replaced by
    /// its size. The header fields of the request are omitted, because they may contain credentials. Secrets are
    /// replaced as in the debug description of a ``DataResponse``.
    public var debugDescription: String {
        let files = Sections.files(temporaryURL, destinationURL, resumeData)
        return Sections(request, response, files, description, timeline).text
    }
}

extension DefaultDataResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// `SUCCESS: ` and the size of the body, or `FAILURE: ` and the error.
    public var description: String { error.resultText(data.map { "\($0.count) bytes" } ?? "no data") }

    /// The same as the debug description of a ``DataResponse``.
    public var debugDescription: String {
        let body = ["[Response Body]: \(BodyText.of(data, contentType: response?.contentType))"]
        return Sections(request, response, body, description, timeline).text
    }
}

extension DefaultDownloadResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// `SUCCESS: ` and the path of the file, or `FAILURE: ` and the error.
    public var description: String { error.resultText((destinationURL ?? temporaryURL)?.path ?? "no file") }

    /// The same as the debug description of a ``DownloadResponse``.
    public var debugDescription: String {
        let files = Sections.files(temporaryURL, destinationURL, resumeData)
        return Sections(request, response, files, description, timeline).text
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

extension Optional where Wrapped == any Error {
    fileprivate func resultText(_ success: String) -> String {
        map { "FAILURE: \($0)" } ?? "SUCCESS: \(success)"
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
    static func files(_ temporary: URL?, _ destination: URL?, _ resumeData: Data?) -> [String] {
        [
            "[TemporaryURL]: \(temporary?.path ?? "none")",
            "[DestinationURL]: \(destination?.path ?? "none")",
            "[ResumeData]: \(resumeData.map { "\($0.count) bytes" } ?? "none")",
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
