internal import Foundation

// Answers that somebody between us and the server may have given, and where redirects lead.

extension FailureTable {
    /// Such an answer is neither a success nor a refusal. Without TLS anyone may redirect or answer with a page that
    /// nobody asked for. A server that has proven who it is redirects by itself.
    static func isPortal(_ response: Response, of request: AttemptContext) -> Bool {
        let isPlain = request.origin.scheme == "http"
        let type = response.value(of: "content-type")
        switch response.status {
        // Whoever expects such a status has asked for it.
        case 300... where request.expectation.isMet(status: response.status, contentType: type): return false
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

    /// `nil` for a location that is relative to the request's URL.
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
    static func words(onRedirect response: Response, of request: AttemptContext) -> String {
        let location = response.value(of: "location")
        let target = location.flatMap { absolute($0, from: request.origin) ?? $0 }.flatMap(withoutSecrets)
        return "HTTP \(response.status)" + (target.map { ", a redirect to \($0)" } ?? "")
    }

    /// Scheme, host, port and path, cut after 200 bytes. Whatever else a URL has may be a token or a password.
    private static func withoutSecrets(_ url: String) -> String? {
        guard let parts = URLComponents(string: url) else { return nil }
        var target = URLComponents()
        (target.scheme, target.host, target.port) = (parts.scheme, parts.host, parts.port)
        target.percentEncodedPath = parts.percentEncodedPath
        // Escaped, so it has neither controls nor characters of several bytes.
        return target.string.flatMap { $0.isEmpty ? nil : String($0.prefix(200)) }
    }
}
