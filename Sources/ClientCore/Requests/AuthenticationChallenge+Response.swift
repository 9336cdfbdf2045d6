internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// Reads the challenge of a response, and the credentials that answer it.

extension AuthenticationChallenge {
    /// Returns `nil` for a response without a `WWW-Authenticate` field.
    init?(_ head: ResponseHead) {
        guard let host = head.url.host, let port = head.url.effectivePort, let response = head.response,
            let challenge = head.values(of: "WWW-Authenticate").first
        else { return nil }
        let scheme = challenge.prefix { $0 != " " && $0 != "," }.lowercased()
        protectionSpace = URLProtectionSpace(
            host: host,
            port: port,
            protocol: head.url.scheme,
            realm: Self.realm(challenge.dropFirst(scheme.count)),
            authenticationMethod: AuthenticationScheme(rawValue: scheme)?.foundationName
                ?? NSURLAuthenticationMethodDefault
        )
        failureResponse = response
    }

    private static func realm(_ parameters: Substring) -> String? {
        MediaTypeParameters.split(String(parameters), at: ",").lazy
            .compactMap { MediaTypeParameters.value(of: "realm", in: ";" + $0) }
            .first
    }
}

extension TransferCredentials {
    /// Returns `nil` for a credential without a user name and password.
    ///
    /// - Parameter challenge: The response that asks for credentials. If it offers only Basic, the next request sends
    ///   the credentials without waiting for another challenge, which saves a request.
    init?(_ credential: URLCredential, answering challenge: ResponseHead? = nil) {
        guard let user = credential.user, let password = credential.password else { return nil }
        guard let challenge, challenge.asksForBasicOnly else {
            self.init(user: user, password: password)
            return
        }
        self.init(user: user, password: password, schemes: .basic, isPreemptive: true)
    }
}

extension ResponseHead {
    /// Whether the response offers only Basic. A realm that contains the name of another scheme is mistaken for an
    /// offer of that scheme. The mistake costs one more request.
    fileprivate var asksForBasicOnly: Bool {
        let challenges = values(of: "WWW-Authenticate").map { $0.lowercased() }
        let others = AuthenticationScheme.allCases.filter { $0 != .basic }
        return !challenges.isEmpty
            && challenges.allSatisfy { text in
                text.hasPrefix("basic") && !others.contains { text.contains($0.rawValue) }
            }
    }
}
