internal import Foundation

/// The body of a curl command.
struct CurlBody {
    /// `nil` without a body.
    private(set) var option: String?
    /// What a reader has to know. Never contains a word of the request: it ends up in a shell's comment,
    /// which ends at a line break.
    private(set) var note: String?

    /// The longest argument that Linux takes, without the NUL at its end: `MAX_ARG_STRLEN`, 32 pages
    /// (`execve(2)`).
    private static let longestArgument = 32 * 4096 - 1

    /// - Parameter contentType: The value of the request's field.
    init(_ body: CurlCommand.Body, contentType: String?, _ secrets: CurlSecrets) {
        switch body {
        case .none: return
        case .data(let data): set(data, contentType, secrets)
        case .file(let path): option = "--data-binary " + Shell.quoted("@" + path)
        case .stream: setInput("a stream")
        }
    }

    private mutating func set(_ data: Data, _ contentType: String?, _ secrets: CurlSecrets) {
        guard let text = Self.text(data) else { return setInput("\(data.count) bytes, not all of them text") }
        guard data.count <= Self.longestArgument else {
            return setInput("\(data.count) bytes, too many for an argument")
        }
        // Not --data-binary, to which a text that begins with @ names a file.
        option = "--data-raw " + Shell.quoted(secrets.body(text, contentType: contentType))
    }

    private mutating func setInput(_ what: String) {
        option = "--data-binary @-"
        note = "the body, \(what), is read from standard input"
    }

    /// `nil` for what is not UTF-8, and for control characters: a terminal that they are pasted into acts
    /// on them.
    private static func text(_ data: Data) -> String? {
        let isControl = { (byte: UInt8) in byte < 0x20 && ![0x09, 0x0a, 0x0d].contains(byte) || byte == 0x7f }
        return data.contains(where: isControl) ? nil : String(data: data, encoding: .utf8)
    }
}
