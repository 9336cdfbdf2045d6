internal import Foundation

// Detection of captive portals and other responders between this machine and the server, and redirect targets.

extension FailureTable {
    /// Returns whether the response may come from a captive portal. Such a response is neither a success nor a refusal.
    /// Without TLS, any device on the path may redirect or respond with an unrequested page. With TLS, the server has
    /// proven its identity, and a redirect is its own.
    static func isPortal(_ response: Response, of request: AttemptContext) -> Bool {
        let isPlain = request.origin.scheme == "http"
        let type = response.value(of: "content-type")
        switch response.status {
        // A caller that expects such a status accepts it as a response of the server.
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

    /// Returns `nil` for a location that is relative to the request's URL.
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

    /// Returns scheme, host, port and path, cut after 200 bytes. Other parts of a URL may contain a token or a
    /// password.
    private static func withoutSecrets(_ url: String) -> String? {
        guard let parts = URLComponents(string: url) else { return nil }
        var target = URLComponents()
        (target.scheme, target.host, target.port) = (parts.scheme, parts.host, parts.port)
        target.percentEncodedPath = parts.percentEncodedPath
        // The string is percent-encoded, so it has no control characters and no multi-byte characters.
        return target.string.flatMap { $0.isEmpty ? nil : String($0.prefix(200)) }
    }
}
