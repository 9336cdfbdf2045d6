internal import Foundation
internal import FoundationNetworking

extension Request: CustomStringConvertible {
    /// The method, the URL and the status, for example `GET https://example.com/ (200)`. The status is missing until
    /// there is a response. The text is empty if creating the request failed. It contains neither a user name and
    /// password nor query values that may be secrets.
    public var description: String {
        guard let request, let url = request.url else { return "" }
        let status = response.map { " (\($0.statusCode))" } ?? ""
        return "\(request.httpMethod ?? "GET") \(url.textWithoutSecrets)\(status)"
    }
}

extension Request: CustomDebugStringConvertible {
    /// The request as a curl(1) command, including all secrets; see ``cURLDescription(redactingSecrets:)``.
    public var debugDescription: String { cURLDescription() }

    /// Returns the request as a curl(1) command for any POSIX shell, after the prompt `$ `. The command includes the
    /// session's header fields, credentials, cookies, and as much of the body as a command line can hold.
    ///
    /// - Parameter redactingSecrets: Whether secrets are replaced by `REDACTED`: credentials, cookies, and values
    ///   whose names suggest a secret. Default: false.
    public func cURLDescription(redactingSecrets: Bool = false) -> String {
        let now = core.snapshot.now
        let settings = core.context.settings
        var command = CurlCommand(now.request, body: core.plan.upload.map(CurlCommand.Body.init))
        command.sessionHeaders = settings.headers
        command.credential = now.credential.flatMap { credential in
            credential.user.map { (user: $0, password: credential.password ?? "") }
        }
        command.cookies = now.request.flatMap(settings.cookieField)
        return command.text(redactingSecrets: redactingSecrets)
    }
}

extension CurlCommand.Body {
    fileprivate init(_ upload: UploadBody) {
        self =
            switch upload {
            case .data(let data): .data(data)
            case .file(let url, _): .file(path: url.path)
            case .stream, .replayable: .stream
            }
    }
}
