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

/// Describes a body in a readable form, for debug descriptions.
enum BodyText {
    /// The maximum number of bytes of a body that are shown.
    static let limit = 2000

    /// Returns the body, truncated to ``limit`` bytes, if it is text. Returns the size of any other body.
    ///
    /// - Parameter total: The size that is shown. Default `nil`: the size of the body.
    static func of(_ body: Data?, total: Int? = nil) -> String {
        guard let body else { return "none" }
        guard !body.isEmpty else { return "empty" }
        let size = total ?? body.count
        guard let text = beginning(of: body) else { return "\(size) bytes that are not text" }
        return body.count > limit ? "\(text)… (\(size) bytes in total)" : text
    }

    /// Returns the same as ``of(_:total:)``, with `REDACTED` in place of the secrets of a form or JSON.
    ///
    /// JSON that is incomplete or invalid is shown as it is.
    static func of(_ body: Data?, contentType: String?) -> String {
        // Only these formats are decoded: the body may be an image of many megabytes.
        guard let body, CurlSecrets.format(contentType, bytes: body) != nil else { return of(body) }
        let (text, secrets) = (String(decoding: body, as: UTF8.self), CurlSecrets(isRedacting: true))
        let redacted = secrets.replacingKnownSecrets(in: text, contentType: contentType)
        return redacted == text ? of(body) : of(Data(redacted.utf8), total: body.count)
    }

    /// Returns the first bytes as text, without a character that the limit would split, and with escapes for characters
    /// that are not printable; `nil` if they are not text.
    private static func beginning(of body: Data) -> String? {
        let shown = body.prefix(limit)
        // A character has at most 4 bytes in UTF-8 (RFC 3629 §3), so at most 3 bytes of a split character remain.
        let mayDrop = body.count > limit ? 0...3 : 0...0
        for dropped in mayDrop {
            if let text = String(validating: shown.dropLast(dropped), as: UTF8.self) {
                guard text.unicodeScalars.allSatisfy(isText) else { return nil }
                return text.printable(upTo: .max, keeping: layout)
            }
        }
        return nil
    }

    /// The control characters that a text may contain.
    private static let layout: Set<Unicode.Scalar> = ["\t", "\n", "\r"]

    private static func isText(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory != .control || layout.contains(scalar)
    }
}
