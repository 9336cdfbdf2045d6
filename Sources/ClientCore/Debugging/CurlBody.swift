internal import Foundation

/// The option of a curl command that sets the body.
struct CurlBody {
    /// The option and its argument; `nil` without a body.
    private(set) var option: String?
    /// A note for the user about standard input. It is printed as a shell comment. It must not contain text from the
    /// request, because a line break would end the comment.
    private(set) var note: String?

    /// The maximum length of an argument in bytes, without the terminating NUL. Linux accepts 32 pages, including the
    /// NUL (`MAX_ARG_STRLEN`, `execve(2)`).
    private static let longestArgument = 32 * 4096 - 1

    /// Creates the option for a body.
    ///
    /// - Parameter contentType: The request's `Content-Type`, from which `secrets` finds out what to redact.
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
        // --data-binary would read a file if the text begins with @.
        option = "--data-raw " + Shell.quoted(secrets.body(text, contentType: contentType))
    }

    private mutating func setInput(_ what: String) {
        option = "--data-binary @-"
        note = "the body (\(what)) is read from standard input"
    }

    /// Returns the body as text; `nil` if the body is not UTF-8 or contains control characters. A terminal would
    /// execute control characters when the user pastes the command.
    private static func text(_ data: Data) -> String? {
        let isControl = { (byte: UInt8) in byte < 0x20 && ![0x09, 0x0a, 0x0d].contains(byte) || byte == 0x7f }
        return data.contains(where: isControl) ? nil : String(data: data, encoding: .utf8)
    }
}
