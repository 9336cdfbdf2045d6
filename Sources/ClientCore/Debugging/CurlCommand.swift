internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A shell command with which curl(1) sends a given request.
///
/// The text starts with the prompt `$ `. The rest runs in any POSIX shell. If the request does not set `Accept`,
/// `User-Agent` or `Expect`, curl may add them.
struct CurlCommand: Sendable {
    /// The source of the body.
    enum Body: Hashable, Sendable {
        case none
        case data(Data)
        case file(path: String)
        /// A stream. curl reads the body from its standard input instead.
        case stream
    }

    /// The text that replaces the command if it cannot be created.
    static let failure = "$ curl command could not be created"

    /// The request; `nil` if creating it failed.
    let request: URLRequest?
    /// The session's header fields. The request's own fields override them.
    var sessionHeaders: HTTPHeaders = [:]
    /// The credentials that are sent if the server requires authentication.
    var credential: (user: String, password: String)?
    /// The `Cookie` field from the cookie storage. The request's own field overrides it.
    var cookies: String?
    var body: Body

    /// Creates the command for a request.
    ///
    /// - Parameter body: The body to send instead of the request's body. Default: `nil`, the request's body is sent.
    init(_ request: URLRequest?, body: Body? = nil) {
        self.request = request
        self.body = body ?? Self.body(of: request)
    }

    private static func body(of request: URLRequest?) -> Body {
        if let data = request?.httpBody { return .data(data) }
        return request?.httpBodyStream == nil ? .none : .stream
    }

    /// Returns the command, with one option per line and the URL in the last line.
    ///
    /// - Parameter redactingSecrets: Whether `REDACTED` replaces secrets, such as credentials and cookies; see
    ///   ``CurlSecrets``.
    /// - Returns: ``failure`` if the request has no URL, its scheme is neither `http` nor `https`, or its method or one
    ///   of its header fields is invalid.
    func text(redactingSecrets: Bool = false) -> String {
        guard let url = request?.url.flatMap(Self.sendable), HTTPToken.isValid(method) else {
            return Self.failure
        }
        guard let fields = CurlFields(merging: sessionHeaders, request?.allHTTPHeaderFields, cookies) else {
            return Self.failure
        }
        let secrets = CurlSecrets(isRedacting: redactingSecrets)
        let body = CurlBody(body, contentType: fields["Content-Type"], secrets)
        let target = secrets.url(url)
        var lines = [methodOption, credentialOption(secrets)].compactMap(\.self)
        lines += fields.options(secrets, hasBody: self.body != .none)
        lines += [body.option].compactMap(\.self)
        // Without --globoff, curl expands brackets and braces as patterns, except for the brackets of an IPv6 address.
        if target.contains(where: "[]{}".contains) { lines.append("--globoff") }
        lines.append(Shell.quoted(target) + (body.note.map { " # \($0)" } ?? ""))
        return (["$ curl -v"] + lines).joined(separator: " \\\n\t")
    }

    private var method: String { request?.httpMethod ?? "GET" }

    private var methodOption: String? {
        switch (method, body) {
        case ("GET", .none): nil
        // With `-X HEAD`, curl would wait for a body of the length that the response announces.
        case ("HEAD", .none): "--head"
        default: "-X \(Shell.quoted(method))"
        }
    }

    private func credentialOption(_ secrets: CurlSecrets) -> String? {
        // Without a colon, curl would prompt for the password.
        credential.map { "-u " + Shell.quoted("\($0.user):\(secrets.value($0.password))") }
    }

    /// Returns the URL without its fragment, which is never sent; `nil` if the URL is not `http` or `https` or has no
    /// host.
    private static func sendable(_ url: URL) -> String? {
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            return nil
        }
        return String(url.absoluteURL.absoluteString.prefix { $0 != "#" })
    }
}

/// The header fields of a curl command.
struct CurlFields {
    /// The fields, sorted by name.
    private let fields: [TransferRequest.Header]

    /// Merges header fields. The request's fields override the cookies and the session's fields.
    ///
    /// - Parameters:
    ///   - session: The session's fields.
    ///   - request: The request's own fields.
    ///   - cookies: The value of `Cookie` from the cookie storage.
    /// - Returns: `nil` if a field's name is not a token, or if its value contains a line break or NUL.
    init?(merging session: HTTPHeaders, _ request: HTTPHeaders?, _ cookies: String?) {
        var fields: [String: TransferRequest.Header] = [:]
        let stored = cookies.map { ["Cookie": $0] } ?? [:]
        for headers in [session, stored, request ?? [:]] {
            // If two names differ only in case, the later field replaces the earlier one. Because the fields are
            // sorted, every run keeps the same field.
            for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
                fields[name.lowercased()] = .init(name, Self.trimmed(value))
            }
        }
        guard fields.values.allSatisfy(Self.isSendable) else { return nil }
        self.fields = fields.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Removes the surrounding white space, which is not part of a value (RFC 9110 §5.5).
    private static func trimmed(_ value: String) -> String {
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
        let end = value.unicodeScalars.reversed().drop(while: isSpace)
        return String(String.UnicodeScalarView(end.reversed().drop(while: isSpace)))
    }

    private static func isSendable(_ field: TransferRequest.Header) -> Bool {
        HTTPToken.isValid(field.name) && field.value.utf8.allSatisfy { $0 != 0 && $0 != 0x0a && $0 != 0x0d }
    }

    /// The value of the field with this name. The case of the name is ignored.
    subscript(name: String) -> String? {
        fields.first { $0.isNamed(name) }?.value
    }

    /// Returns the options that set the fields.
    ///
    /// - Parameter hasBody: Whether the request has a body. If it has one but no `Content-Type`, an option prevents
    ///   curl from adding the `Content-Type` of a form.
    func options(_ secrets: CurlSecrets, hasBody: Bool) -> [String] {
        var options = fields.filter { $0.isNamed("Cookie") }.map { Self.cookieOption(secrets.field($0)) }
        options += fields.filter { !$0.isNamed("Cookie") }.map { Self.option(secrets.field($0)) }
        if hasBody, self["Content-Type"] == nil { options.append("-H 'Content-Type:'") }
        // curl sends this field unchanged. `--compressed` makes curl decode the response before printing it.
        if self["Accept-Encoding"] != nil { options.append("--compressed") }
        return options
    }

    /// Returns a `-b` option for a `Cookie` field. If the value has no `=` or begins with `@`, returns an `-H` option
    /// instead: curl would take the argument of `-b` for a file name.
    private static func cookieOption(_ field: TransferRequest.Header) -> String {
        let bytes = field.value.utf8
        guard bytes.contains(UInt8(ascii: "=")), bytes.first != UInt8(ascii: "@") else {
            return option(field)
        }
        return "-b " + Shell.quoted(field.value)
    }

    /// Returns an `-H` option. For an empty value, a semicolon replaces the colon: after a colon without a value, curl
    /// would drop the field.
    private static func option(_ field: TransferRequest.Header) -> String {
        "-H " + Shell.quoted(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
}

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

/// Quotes arguments for a POSIX shell (IEEE 1003.1, Shell Command Language §2.2.2).
package enum Shell {
    /// Returns the text as one word of a command. The text must not contain NUL.
    package static func quoted(_ text: String) -> String {
        guard text.isEmpty || !text.utf8.allSatisfy(isLetterOrDigit) else { return text }
        // Iterates over scalars, because the shell only sees bytes: for Swift, an apostrophe with a combining
        // accent is a different `Character`.
        var word = "'".unicodeScalars
        for scalar in text.unicodeScalars {
            if scalar == "'" { word += "'\\''".unicodeScalars } else { word.append(scalar) }
        }
        word.append("'")
        return String(word)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
