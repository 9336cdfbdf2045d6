internal import ArgumentParser
internal import ClientCore
internal import Foundation
internal import NetworkReachability

/// The probe that checks whether a host responds, in addition to the kernel's routes.
enum ProbeChoice: Hashable {
    /// No probe.
    case route
    case tcp(port: UInt16)
    /// `http` or `https`, and the port if it is not the scheme's default.
    case web(scheme: String, port: UInt16?)

    static let acceptedForms =
        "`route`, `tcp`, `tcp:PORT`, `http`, `http:PORT`, `https` or `https:PORT`; a port is 1 to 65535"

    /// Whether the probe measures how long its steps take.
    var measuresPhases: Bool { if case .web = self { true } else { false } }

    /// The HTTP statuses that count as up. Redirects count, because the host has responded; they are not followed.
    static let expectedStatus = 200...399

    init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let port = parts.count == 2 ? UInt16(parts[1]) : nil
        if parts.count == 2, port ?? 0 == 0 { return nil }
        switch parts[0] {
        case "route" where parts.count == 1: self = .route
        case "tcp": self = .tcp(port: port ?? 443)
        case "http", "https": self = .web(scheme: String(parts[0]), port: port)
        default: return nil
        }
    }

    /// Parses an argument.
    static func argument(_ text: String) throws -> ProbeChoice {
        guard let choice = ProbeChoice(text) else {
            throw ValidationError("\(Printer.quoted(text)) is not a probe; accepted: \(acceptedForms)")
        }
        return choice
    }

    /// Returns the probe for a target; `nil` for `route`.
    func probe(for target: PathTarget) throws(CommandError) -> (any Probe)? {
        if self == .route { return nil }
        guard case .host(let host) = target else {
            throw CommandError(.usage, "`--probe` requires a host", hint: "name a host, or omit `--probe`")
        }
        switch self {
        case .route: return nil
        case .tcp(let port): return TCPProbe(port: port)
        case .web(let scheme, let port): return try web(host, scheme, port)
        }
    }

    private func web(_ host: NetworkHost, _ scheme: String, _ port: UInt16?) throws(CommandError) -> HTTPProbe
    {
        try CommandError.requireUsableTransport()
        var components = URLComponents()
        components.scheme = scheme
        // URLComponents expects an IPv6 address in brackets, with its zone separator escaped (RFC 6874).
        let literal = host.text.replacing("%", with: "%25")
        components.percentEncodedHost = host.text.contains(":") ? "[\(literal)]" : host.text
        components.port = port.map(Int.init)
        components.path = "/"
        guard let url = components.url else {
            throw CommandError(.usage, "\(Printer.quoted(host.text)) cannot be probed by \(scheme)")
        }
        do throws(InvalidProbe) {
            // HEAD is sufficient, because only the status matters. Bodies can be long.
            return try HTTPProbe(url: url, method: .head, expectedStatus: Self.expectedStatus)
        } catch {
            throw CommandError(.usage, "\(error)")
        }
    }
}

extension ProbeChoice {
    /// Returns a hint for a URL or `HOST:PORT` that was given as a host: the host, and the `--probe` option for the
    /// scheme and port. Returns `nil` for other text.
    static func suggestion(for invalid: InvalidHost) -> String? {
        let url = invalid.reason == .port ? "tcp://\(invalid.text)" : invalid.text
        guard invalid.reason == .port || invalid.reason == .scheme, let parts = URLComponents(string: url),
            let scheme = parts.scheme, let host = parts.encodedHost,
            (try? NetworkHost(validating: host)) != nil
        else { return nil }
        let probe = parts.port.map { "\(scheme):\($0)" } ?? scheme
        return ProbeChoice(probe).map { _ in "did you mean the host `\(host)` with `--probe \(probe)`?" }
    }
}
