internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A shell command that makes curl(1) send the same request.
///
/// The text starts with the prompt `$ `. The rest runs in any POSIX shell. curl may add fields that the request
/// does not set: `Accept`, `User-Agent`, `Expect`.
struct CurlCommand: Sendable {
    /// The source of the body.
    enum Body: Hashable, Sendable {
        case none
        case data(Data)
        case file(path: String)
        /// A stream. The command reads it from curl's standard input.
        case stream
    }

    /// The text if no command can be created.
    static let failure = "$ curl command could not be created"

    /// The request; `nil` if creating it failed.
    let request: URLRequest?
    /// The session's fields. The request's own fields override them.
    var sessionHeaders: HTTPHeaders = [:]
    /// The credentials for a server that asks for them.
    var credential: (user: String, password: String)?
    /// The `Cookie` field from the cookie storage. The request's own field overrides it.
    var cookies: String?
    var body: Body

    /// - Parameter body: `nil` selects the body of `request`.
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
    /// - Parameter redactingSecrets: Whether credentials, cookies, and values whose names suggest a secret are
    ///   written as `REDACTED`; see ``CurlSecrets``.
    /// - Returns: ``failure`` for a request that would not be sent: it has no URL, its scheme is not HTTP, or
    ///   HTTP does not allow its method or one of its fields.
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
        // Without --globoff, curl expands all brackets and braces except those of an IPv6 address.
        if target.contains(where: "[]{}".contains) { lines.append("--globoff") }
        lines.append(Shell.quoted(target) + (body.note.map { " # \($0)" } ?? ""))
        return (["$ curl -v"] + lines).joined(separator: " \\\n\t")
    }

    private var method: String { request?.httpMethod ?? "GET" }

    private var methodOption: String? {
        switch (method, body) {
        case ("GET", .none): nil
        // With `-X HEAD` curl would wait for a body as long as the response's Content-Length.
        case ("HEAD", .none): "--head"
        default: "-X \(Shell.quoted(method))"
        }
    }

    private func credentialOption(_ secrets: CurlSecrets) -> String? {
        // Without a colon curl would ask for the password.
        credential.map { "-u " + Shell.quoted("\($0.user):\(secrets.value($0.password))") }
    }

    /// Returns the URL without its fragment, which is never sent, or `nil` if requests cannot be sent to it.
    private static func sendable(_ url: URL) -> String? {
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            return nil
        }
        return String(url.absoluteURL.absoluteString.prefix { $0 != "#" })
    }
}

/// Quoting for a POSIX shell (IEEE 1003.1, Shell Command Language §2.2.2).
enum Shell {
    /// Returns the text as one word. The text may contain anything but NUL.
    static func quoted(_ text: String) -> String {
        guard text.isEmpty || !text.utf8.allSatisfy(isLetterOrDigit) else { return text }
        // Iterates over scalars: an apostrophe with a combining accent is another `Character`, but the same
        // byte to the shell.
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
