internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// Decides which credentials a session sends over plain http.
///
/// A device on the network path can remove the offers of stronger schemes from a response, so that the client sends the
/// password in plain text (Basic). Therefore, Basic is not sent to an origin that has offered a stronger scheme that may be
/// used. NTLM and Negotiate over http can be relayed to another server, and are sent only if the program permits it.
final class PlainAuthentication: Sendable {
    private struct Origin: Hashable {
        let host: String
        let port: Int
    }

    /// The maximum number of remembered origins, which take about 100 bytes each. A program with more http servers that
    /// ask for credentials is unlikely.
    private static let limit = 10_000

    /// The schemes other than Basic that the origins have offered.
    private let offered = Lock<[Origin: TransferCredentials.Schemes]>([:])

    /// Remembers the schemes that a server has offered in a transfer.
    func note(_ schemes: TransferCredentials.Schemes, offeredBy url: URL) {
        // Few transfers are offered any scheme, and this function is called for each transfer.
        guard !schemes.isEmpty else { return }
        let strong = schemes.subtracting(.basic)
        guard !strong.isEmpty, let origin = Self.plainOrigin(of: url) else { return }
        offered.withLock { offered in
            if offered[origin] == nil, offered.count == Self.limit { offered.remove(at: offered.startIndex) }
            offered[origin, default: []].formUnion(strong)
        }
    }

    /// Returns the credentials without the schemes that must not be used for the URL; `nil` if no scheme remains.
    ///
    /// - Parameter relayable: Whether NTLM and Negotiate may be used over http.
    func permitted(
        _ credentials: TransferCredentials,
        for url: URL?,
        relayable: Bool
    ) -> TransferCredentials? {
        guard let origin = url.flatMap(Self.plainOrigin) else { return credentials }
        let usable = TransferCredentials.Schemes.all.subtracting(relayable ? [] : [.ntlm, .negotiate])
        var permitted = credentials
        permitted.schemes.formIntersection(usable)
        let offered = offered.withLock { $0[origin] ?? [] }
        if !offered.isDisjoint(with: usable) { permitted.schemes.remove(.basic) }
        return permitted.schemes.isEmpty ? nil : permitted
    }

    private static func plainOrigin(of url: URL) -> Origin? {
        guard url.scheme?.lowercased() == "http", let host = url.host?.lowercased(),
            let port = url.effectivePort
        else { return nil }
        return Origin(host: host, port: port)
    }
}

/// The HTTP authentication schemes that libcurl supports, by their lower-case names.
enum AuthenticationScheme: String, CaseIterable, Sendable {
    case basic
    case digest
    case negotiate
    case ntlm

    /// Foundation's name of the scheme, as in `URLProtectionSpace`.
    var foundationName: String {
        switch self {
        case .basic: NSURLAuthenticationMethodHTTPBasic
        case .digest: NSURLAuthenticationMethodHTTPDigest
        case .negotiate: NSURLAuthenticationMethodNegotiate
        case .ntlm: NSURLAuthenticationMethodNTLM
        }
    }
}
