package import ClientCore
internal import NetwatchTransport

/// Where a credential that was added to an attempt may be sent. The sender checks it for every transfer, after
/// everything that can change the request's URL.
package struct CredentialPermit: Sendable {
    /// The name of the credential.
    package let name: String
    private let origins: [OriginPattern]
    /// The client's certificate and key, if they are the credential.
    package let identity: ClientIdentity?

    init(name: String, origins: [OriginPattern], identity: ClientIdentity? = nil) {
        self.name = name
        self.origins = origins
        self.identity = identity
    }

    func permits(_ origin: TransferOrigin) -> Bool { origins.contains { $0.matches(origin) } }

    /// The reason to withhold a request to an origin that the credential does not list.
    ///
    /// - Parameter origin: `nil` if the URL has none.
    func refusal(of origin: TransferOrigin?) -> WithheldReason {
        let place = origin.map { "`\($0)`" } ?? "this URL"
        let list = origins.map { "\($0)" }.joined(separator: ", ")
        return WithheldReason(
            .change,
            "the credential `\(name)` must not be sent to \(place); accepted: \(list)"
        )
    }
}
