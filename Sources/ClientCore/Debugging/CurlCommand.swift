internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A request as the line for a shell that makes curl(1) send the same.
///
/// The text starts with `$ `, as shells print it before a command; what follows runs in any POSIX shell.
/// What the request does not have, curl may add as it likes: `Accept`, `User-Agent`, `Expect`.
struct CurlCommand: Sendable {
    /// Where the body comes from.
    enum Body: Hashable, Sendable {
        case none
        case data(Data)
        case file(path: String)
        /// A stream, which only curl's standard input can stand for.
        case stream
    }

    /// What is printed when there is no such command.
    static let failure = "$ curl command could not be created"

    /// `nil` when none could be made.
    let request: URLRequest?
    /// The session's fields. The request's own win.
    var sessionHeaders: HTTPHeaders = [:]
    /// What a server that asks for it is told.
    var credential: (user: String, password: String)?
    /// The `Cookie` field made of stored cookies. The request's own field wins.
    var cookies: String?
    var body: Body

    /// - Parameter body: `nil` for the body of `request`.
    init(_ request: URLRequest?, body: Body? = nil) {
        self.request = request
        self.body = body ?? Self.body(of: request)
    }

    private static func body(of request: URLRequest?) -> Body {
        if let data = request?.httpBody { return .data(data) }
        return request?.httpBodyStream == nil ? .none : .stream
    }

    /// The command: one option a line, the URL in the last one.
    ///
    /// - Parameter redactingSecrets: Whether credentials, cookies, and values whose names speak of secrets
    ///   are written as `REDACTED`; see ``CurlSecrets``.
    /// - Returns: ``failure`` for a request that would not be sent: without URL, to something else than an
    ///   HTTP server, or with a method or a field that HTTP does not allow.
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
        // The brackets of an address are the only ones that curl takes for what they are.
        if target.contains(where: "[]{}".contains) { lines.append("--globoff") }
        lines.append(Shell.quoted(target) + (body.note.map { " # \($0)" } ?? ""))
        return (["$ curl -v"] + lines).joined(separator: " \\\n\t")
    }

    private var method: String { request?.httpMethod ?? "GET" }

    private var methodOption: String? {
        switch (method, body) {
        case ("GET", .none): nil
        // With `-X HEAD` curl would wait for the body that the response's Content-Length speaks of.
        case ("HEAD", .none): "--head"
        default: "-X \(Shell.quoted(method))"
        }
    }

    private func credentialOption(_ secrets: CurlSecrets) -> String? {
        // Without a colon curl would ask for the password.
        credential.map { "-u " + Shell.quoted("\($0.user):\(secrets.value($0.password))") }
    }

    /// The URL without its fragment, which is never sent, if it is one that requests are sent to.
    private static func sendable(_ url: URL) -> String? {
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            return nil
        }
        return String(url.absoluteURL.absoluteString.prefix { $0 != "#" })
    }
}

/// Words of a POSIX shell (IEEE 1003.1, Shell Command Language §2.2.2).
enum Shell {
    /// The text as one word, whatever it contains but NUL.
    static func quoted(_ text: String) -> String {
        guard text.isEmpty || !text.utf8.allSatisfy(isLetterOrDigit) else { return text }
        // By scalars: a quotation mark with an accent is another character, and the same byte to the shell.
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
