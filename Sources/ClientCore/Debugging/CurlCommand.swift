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
