internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore
@testable internal import NetwatchTransport

/// Policies that a program evaluates in its own custom evaluation.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct ServerTrustEvaluateTests {
    private let authority: TestAuthority
    private let own: Certificate
    private let intermediate: Certificate
    private let root: Certificate

    init() throws {
        authority = try TestAuthority()
        _ = try authority.server("policy.test")
        own = try Certificate(contentsOf: authority.url("policy.test.pem"))
        intermediate = try Certificate(contentsOf: authority.url("intermediate.pem"))
        root = try Certificate(contentsOf: authority.url("root.pem"))
    }

    private func trust(_ chain: [Certificate], code: Int32 = 0) -> ServerTrust {
        let verdict = TrustVerdict(code: code, depth: 0, message: "words")
        return ServerTrust(
            PresentedTrust(host: "policy.test", chain: chain.map { Array($0.data) }, verdict: verdict)
        )
    }

    private func pins(_ pins: [Certificate], chain: Bool = true, host: Bool = true) -> ServerTrustPolicy {
        .pinCertificates(certificates: pins, validateCertificateChain: chain, validateHost: host)
    }

    private func keys(_ pins: [Certificate], chain: Bool = true) -> ServerTrustPolicy {
        .pinPublicKeys(
            publicKeys: pins.map(\.publicKey),
            validateCertificateChain: chain,
            validateHost: true
        )
    }

    @Test
    func `the default evaluation uses the handshake's verdict and the given host name`() {
        let shown = trust([own, intermediate])
        let strict = ServerTrustPolicy.performDefaultEvaluation(validateHost: true)
        #expect(strict.evaluate(shown, forHost: "policy.test"))
        #expect(strict.evaluate(shown, forHost: "POLICY.test."))
        #expect(!strict.evaluate(shown, forHost: "other.test"))
        #expect(!strict.evaluate(trust([own, intermediate], code: 20), forHost: "policy.test"))
        let lax = ServerTrustPolicy.performDefaultEvaluation(validateHost: false)
        #expect(lax.evaluate(shown, forHost: "other.test"))
        #expect(!lax.evaluate(trust([own], code: 10), forHost: "policy.test"))
    }

    @Test func `a pinned certificate validates the chain below it, whatever the system trusts`() {
        let shown = trust([own, intermediate], code: 20)
        for pin in [root, intermediate, own] {
            #expect(pins([pin]).evaluate(shown, forHost: "policy.test"), "\(pin)")
            #expect(!pins([pin]).evaluate(shown, forHost: "other.test"), "\(pin)")
            #expect(pins([pin], host: false).evaluate(shown, forHost: "other.test"), "\(pin)")
        }
        // Without the intermediate, the server's certificate does not lead to the root.
        #expect(!pins([root]).evaluate(trust([own]), forHost: "policy.test"))
        #expect(!pins([]).evaluate(shown, forHost: "policy.test"))
        #expect(!pins([root]).evaluate(trust([]), forHost: "policy.test"))
    }

    @Test func `a pinned root excuses no expiry, no client certificate and no other authority`() throws {
        _ = try authority.server("old.test", validity: ("20200101000000Z", "20210101000000Z"))
        _ = try authority.client("client.test")
        let old = try Certificate(contentsOf: authority.url("old.test.pem"))
        let client = try Certificate(contentsOf: authority.url("client.test.pem"))
        #expect(!pins([root]).evaluate(trust([old, intermediate]), forHost: "old.test"))
        #expect(!pins([root]).evaluate(trust([client, intermediate]), forHost: "client.test"))
        let impostor = try TestAuthority()
        let forged = try Certificate(contentsOf: impostor.url("root.pem"))
        #expect(forged.subject == root.subject)
        #expect(!pins([forged]).evaluate(trust([own, intermediate]), forHost: "policy.test"))
    }

    @Test func `without chain validation, neither the verdict nor the host name matters`() {
        let shown = trust([own, intermediate], code: 10)
        #expect(pins([intermediate], chain: false).evaluate(shown, forHost: "other.test"))
        #expect(!pins([root], chain: false).evaluate(shown, forHost: "policy.test"))
        #expect(keys([own], chain: false).evaluate(shown, forHost: "other.test"))
        #expect(!keys([root], chain: false).evaluate(shown, forHost: "policy.test"))
    }

    @Test func `a pinned key also requires a trusted verdict`() {
        let shown = trust([own, intermediate])
        #expect(keys([root, intermediate]).evaluate(shown, forHost: "policy.test"))
        #expect(!keys([root, intermediate]).evaluate(shown, forHost: "other.test"))
        #expect(!keys([root]).evaluate(shown, forHost: "policy.test"))
        #expect(!keys([intermediate]).evaluate(trust([own, intermediate], code: 20), forHost: "policy.test"))
    }

    @Test func `revocation lists are evaluated, and stapled responses cannot be`() throws {
        let revoked = try authority.server("revoked.test")
        try authority.revoke(revoked)
        _ = try authority.revocationList("list.pem")
        try authority.openssl("openssl ca -config openssl.cnf -name root -gencrl -out foreign.pem")
        let bad = try Certificate(contentsOf: authority.url("revoked.test.pem"))
        func policy(_ flags: RevocationFlags) -> ServerTrustPolicy {
            .performRevokedEvaluation(validateHost: true, revocationFlags: flags)
        }
        let list = try CertificateRevocationList(contentsOf: authority.url("list.pem"))
        let foreign = try CertificateRevocationList(contentsOf: authority.url("foreign.pem"))
        let good = trust([own, intermediate])
        #expect(policy(.lists([foreign, list])).evaluate(good, forHost: "policy.test"))
        #expect(!policy(.lists([list])).evaluate(good, forHost: "other.test"))
        #expect(!policy(.lists([list])).evaluate(trust([bad, intermediate]), forHost: "revoked.test"))
        #expect(!policy(.lists([foreign])).evaluate(good, forHost: "policy.test"))
        #expect(
            !policy(.lists([list])).evaluate(trust([own, intermediate], code: 20), forHost: "policy.test")
        )
        #expect(!policy([.stapledStatus, .lists([list])]).evaluate(good, forHost: "policy.test"))
        #expect(policy(.anyAvailableMethod([list])).evaluate(good, forHost: "policy.test"))
        #expect(!policy(.anyAvailableMethod([foreign])).evaluate(good, forHost: "policy.test"))
        #expect(!policy(.anyAvailableMethod()).evaluate(good, forHost: "policy.test"))
    }

    @Test func `a custom evaluation can call other policies`() {
        let pins = pins([root])
        let either = ServerTrustPolicy.customEvaluation { trust, host in
            pins.evaluate(trust, forHost: host) || host == "lax.test"
        }
        #expect(either.evaluate(trust([own, intermediate], code: 20), forHost: "policy.test"))
        #expect(either.evaluate(trust([own], code: 20), forHost: "lax.test"))
        #expect(!either.evaluate(trust([own], code: 20), forHost: "policy.test"))
        #expect(ServerTrustPolicy.disableEvaluation.evaluate(trust([]), forHost: "any.test"))
    }
}
