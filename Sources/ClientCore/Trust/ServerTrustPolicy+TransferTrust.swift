internal import Foundation
internal import NetwatchTransport

extension ServerTrustPolicy {
    /// The policy in the engine's form. Transfers share connections only if their values are equal. A value with a
    /// ``TrustCheck`` equals only its own copies, so each access to this property creates a different value.
    var transferTrust: TransferTrust {
        var trust = TransferTrust()
        switch self {
        case .performDefaultEvaluation(let validateHost):
            trust.checksHost = validateHost
        case .performRevokedEvaluation(let validateHost, let flags):
            trust.checksHost = validateHost
            trust.requiresStapledStatus = flags.requiresStapledStatus
            trust.revocationLists = flags.lists.flatMap(\.pem)
            trust.acceptsAnyRevocationSource = flags.acceptsAnyMethod
            trust.requiresRevocationList = flags.requiresList
        case .pinCertificates(let pins, validateCertificateChain: true, let validateHost):
            trust.anchors = .only(pem: pins.flatMap(\.pem))
            trust.checksHost = validateHost
        case .pinCertificates(let pins, _, _):
            trust.decideOnly(TrustCheck { Self.chain($0, hasOneOf: pins.map(\.data)) { $0.der } })
        case .pinPublicKeys(let keys, validateCertificateChain: true, let validateHost):
            trust.checksHost = validateHost
            let pins = keys.map(\.data)
            trust.check = TrustCheck {
                $0.verdict.isTrusted && Self.chain($0, hasOneOf: pins) { $0.publicKey }
            }
        case .pinPublicKeys(let keys, _, _):
            trust.decideOnly(TrustCheck { Self.chain($0, hasOneOf: keys.map(\.data)) { $0.publicKey } })
        case .disableEvaluation:
            trust.decideOnly(nil)
        case .custom(let evaluation):
            trust.decideOnly(
                TrustCheck(by: .program) { presented in
                    let trust = ServerTrust(presented)
                    return evaluation.evaluate(trust, trust.host)
                }
            )
        }
        return trust
    }

    private static func chain(
        _ presented: PresentedTrust,
        hasOneOf pins: [Data],
        _ part: (borrowing X509Certificate) -> Data?
    ) -> Bool {
        CertificateChain.linked(presented.chain).contains { part($0.x509).map(pins.contains) ?? false }
    }
}

extension TransferTrust {
    /// Lets `check` alone decide. If it is `nil`, every server is trusted.
    fileprivate mutating func decideOnly(_ check: TrustCheck?) {
        anchors = nil
        checksHost = false
        self.check = check
    }
}
