internal import Foundation

/// The body of a curl command.
struct CurlBody {
    /// The option that sets the body; `nil` without a body.
    private(set) var option: String?
    /// A hint for the reader. It never contains text from the request: it is printed as a shell comment, which
    /// a line break would end.
    private(set) var note: String?

    /// The maximum length of an argument on Linux, without the terminating NUL: `MAX_ARG_STRLEN`, 32 pages
    /// (`execve(2)`).
    private static let longestArgument = 32 * 4096 - 1

    /// - Parameter contentType: The request's `Content-Type`.
    init(_ body: CurlCommand.Body, contentType: String?, _ secrets: CurlSecrets) {
        switch body {
        case .none: return
        case .data(let data): set(data, contentType, secrets)
        case .file(let path): option = "--data-binary " + Shell.quoted("@" + path)
        case .stream: setInput("a stream")
        }
    }

    private mutating func set(_ data: Data, _ contentType: String?, _ secrets: CurlSecrets) {
        guard let text = Self.text(data) else { return setInput("\(data.count) bytes, not text") }
        guard data.count <= Self.longestArgument else {
            return setInput("\(data.count) bytes, too many for an argument")
        }
        // Not --data-binary, which reads a file if the text begins with @.
        option = "--data-raw " + Shell.quoted(secrets.body(text, contentType: contentType))
    }

    private mutating func setInput(_ what: String) {
        option = "--data-binary @-"
        note = "the body, \(what), is read from standard input"
    }

    /// Returns the body as text. Returns `nil` if it is not UTF-8 or contains control characters, because a
    /// terminal would execute them when the command is pasted.
    private static func text(_ data: Data) -> String? {
        let isControl = { (byte: UInt8) in byte < 0x20 && ![0x09, 0x0a, 0x0d].contains(byte) || byte == 0x7f }
        return data.contains(where: isControl) ? nil : String(data: data, encoding: .utf8)
    }
}
