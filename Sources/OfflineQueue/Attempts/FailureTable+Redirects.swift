internal import ClientCore
internal import Foundation

// Detects responses of captive portals and other devices between this machine and the server, and describes redirects.

extension FailureTable {
    /// Returns whether the response may come from a captive portal instead of the server. It then counts neither as a
    /// success nor as a refusal.
    ///
    /// Without TLS, any device on the path may redirect the request or respond with an unrequested page. With TLS, the
    /// server has proven its identity, so a redirect comes from the server. ``Expectation/rules`` recognize the server
    /// without TLS: they decide alone, except about a 511, which no server sends for itself. Nothing intercepts
    /// requests to this machine. The host of the URL tells that, not the path: a request through a proxy on this
    /// machine may still meet a portal.
    static func isPortal(_ response: Response, of request: AttemptContext) -> Bool {
        if request.origin.isLoopback { return false }
        let isPlain = request.origin.scheme == "http"
        if !request.expectation.rules.isEmpty, isPlain || !request.validatesServer {
            guard request.expectation.unmetRule(in: response) == nil else { return true }
            return response.status == 511 && !request.expectation.isMet(by: response)
        }
        let type = response.value(of: "content-type")
        switch response.status {
        // A caller that expects this status accepts it, even though a portal may have sent it.
        case 300... where request.expectation.isMet(by: response): return false
        case 511: return true
        case 301, 302, 303, 307, 308:
            guard let location = response.value(of: "location") else { return isPlain }
            return isPlain || !request.validatesServer && leads(location, awayFrom: request.origin)
        default:
            guard isPlain, let type, type.lowercased().hasPrefix("text/html") else { return false }
            return !acceptsHTML(request.accept) || !request.expectation.isType(type)
        }
    }

    private static func leads(_ location: String, awayFrom origin: Origin) -> Bool {
        guard let location = absolute(location, from: origin) else { return false }
        return (try? Origin(url: location)) != origin
    }

    /// Returns the absolute form of a `Location`; `nil` if it is a path relative to the request's URL, and therefore
    /// leads to the same origin.
    private static func absolute(_ location: String, from origin: Origin) -> String? {
        if location.hasPrefix("//") { return "\(origin.scheme):\(location)" }
        return location.contains("://") ? location : nil
    }

    private static func acceptsHTML(_ accept: String?) -> Bool {
        guard let accept = accept?.lowercased() else { return true }
        return ["text/html", "text/*", "*/*", "xhtml"].contains { accept.contains($0) }
    }
}

extension FailureTable {
    /// Returns the text for a response: its status and, if it is a redirect with a `Location`, its target.
    static func words(onRedirect response: Response, of request: AttemptContext) -> String {
        let location = 300..<400 ~= response.status ? response.value(of: "location") : nil
        // The secrets are removed first, because the text is truncated.
        let shown = location.map(response.redactor.text)
        let target = shown.flatMap { absolute($0, from: request.origin) ?? $0 }.flatMap(withoutSecrets)
        return "HTTP \(response.status)" + (target.map { ", a redirect to \($0)" } ?? "")
    }

    /// Returns the scheme, host, port and path of a URL, truncated to 200 bytes. The other parts are omitted, because
    /// they may contain a token or a password.
    private static func withoutSecrets(_ url: String) -> String? {
        // A percent-encoded string has no control characters, and each character takes one byte.
        let target = URLComponents(string: RedactedURL.withoutQuery(url))?.string
        return target.flatMap { $0.isEmpty ? nil : String($0.prefix(200)) }
    }
}
