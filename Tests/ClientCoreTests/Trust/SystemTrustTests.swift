internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore
@testable internal import NetwatchTransport

/// Policies that use the system's authorities. In these tests, the tests' own root replaces the system's list, because
/// tests must not change that list.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct SystemTrustTests {
    private let server: TLSServer

    init() async throws {
        server = try await TLSServer.shared()
    }

    /// Returns the reason why a session would reject the server; `nil` if a session would accept it.
    private func reason(
        _ host: String,
        _ policy: ServerTrustPolicy
    ) async throws -> AFError.ServerTrustFailureReason? {
        var request = TransferRequest(url: "\(server.url(host))/")
        request.trust = policy.transferTrust
        #expect(request.trust.anchors == .system)
        request.trust.anchors = .only(pem: try server.certificate("root").pem)
        let ends = Recorder<TransferEnd>()
        let pool = TransferPool(engine: server.engine)
        pool.start(request) { events in
            for case .end(let end) in events { ends.record(end) }
        }
        try await ends.wait { !$0.isEmpty }
        guard let failure = ends.values[0].failure else { return nil }
        let error = failure.error(for: URL(string: request.url), under: policy)
        return try #require((error as? AFError)?.trustReason, "\(failure)")
    }

    private func lists(_ names: String...) throws -> ServerTrustPolicy {
        let lists = try names.map { try CertificateRevocationList(contentsOf: server.authority.url($0)) }
        return .performRevokedEvaluation(validateHost: true, revocationFlags: .lists(lists))
    }

    private func keys(_ names: String...) throws -> ServerTrustPolicy {
        .pinPublicKeys(
            publicKeys: try names.map { try server.certificate($0).publicKey },
            validateCertificateChain: true,
            validateHost: true
        )
    }

    @Test func `the default evaluation checks the chain, the validity period and the host`() async throws {
        let policy = ServerTrustPolicy.performDefaultEvaluation(validateHost: true)
        #expect(try await reason("valid.test", policy) == nil)
        let expired = try await reason("expired.test", policy)
        if case .defaultEvaluationFailed = expired {} else { Issue.record("\(String(describing: expired))") }
        #expect(expired?.output?.verdict?.problem == .expired)
        let wrong = try await reason("wrong.test", policy)
        if case .hostValidationFailed = wrong {} else { Issue.record("\(String(describing: wrong))") }
        let lax = ServerTrustPolicy.performDefaultEvaluation(validateHost: false)
        #expect(try await reason("wrong.test", lax) == nil)
    }

    @Test(arguments: ["root", "intermediate", "valid.test"])
    func `any key of the chain can be pinned, also the root's, which the server does not send`(pin: String)
        async throws
    {
        #expect(try await reason("valid.test", try keys(pin)) == nil)
        #expect(try await reason("valid.test", try keys("self.test", pin)) == nil)
    }

    @Test func `a server without a pinned key is refused, and the error lists its keys`() async throws {
        let reason = try await reason("valid.test", try keys("self.test"))
        guard case .publicKeyPinningFailed(let output, let pinned) = reason else {
            Issue.record("\(String(describing: reason))")
            return
        }
        #expect(output.verdict?.isTrusted == true)
        #expect(output.certificates == (try ["valid.test", "intermediate", "root"].map(server.certificate)))
        #expect(pinned == [try server.certificate("self.test").publicKey])
        for key in pinned + output.certificates.map(\.publicKey) {
            #expect(reason?.text.contains(key.fingerprint) == true)
        }
    }

    @Test func `a pinned key does not excuse an expired certificate or another host's name`() async throws {
        let expired = try await reason("expired.test", try keys("expired.test"))
        if case .defaultEvaluationFailed = expired {} else { Issue.record("\(String(describing: expired))") }
        let wrong = try await reason("wrong.test", try keys("wrong.test"))
        if case .hostValidationFailed = wrong {} else { Issue.record("\(String(describing: wrong))") }
    }

    @Test func `a certificate on its issuer's revocation list is refused`() async throws {
        #expect(try await reason("valid.test", try lists("list.pem")) == nil)
        let revoked = try await reason("revoked.test", try lists("list.pem"))
        guard case .revocationCheckFailed(let output) = revoked else {
            Issue.record("\(String(describing: revoked))")
            return
        }
        #expect(output.verdict?.problem == .revoked)
        #expect(output.verdict?.code == 23)
        #expect(
            revoked?.text.contains("revocation check failed: certificate revoked (23, certificate 0)") == true
        )
    }

    @Test(arguments: ["foreign.pem", "old.pem"])
    func `a certificate without a current list of its issuer is refused`(
        list: String
    ) async throws {
        let reason = try await reason("valid.test", try lists(list))
        if case .revocationCheckFailed = reason {} else { Issue.record("\(String(describing: reason))") }
        #expect(reason?.output?.verdict?.problem == .revocationUnknown)
    }

    @Test func `a stapled response must be present and good`() async throws {
        let policy = ServerTrustPolicy.performRevokedEvaluation(
            validateHost: true,
            revocationFlags: .stapledStatus
        )
        #expect(try await reason("good.test", policy) == nil)
        for host in ["bad.test", "valid.test"] {
            let reason = try await reason(host, policy)
            if case .revocationCheckFailed = reason {
            } else {
                Issue.record("\(host): \(String(describing: reason))")
            }
            #expect(reason?.output?.transferFailure.code == 91)
        }
    }

    private func anyMethod(_ names: String...) throws -> ServerTrustPolicy { try anyMethod(names) }

    private func anyMethod(_ names: [String]) throws -> ServerTrustPolicy {
        let lists = try names.map { try CertificateRevocationList(contentsOf: server.authority.url($0)) }
        return .performRevokedEvaluation(validateHost: true, revocationFlags: .anyAvailableMethod(lists))
    }

    @Test func `a stapled response or a list suffices if any method is accepted`() async throws {
        // `good.test` staples a good response, `valid.test` none.
        #expect(try await reason("good.test", try anyMethod()) == nil)
        #expect(try await reason("good.test", try anyMethod("foreign.pem", "old.pem")) == nil)
        #expect(try await reason("good.test", try anyMethod("list.pem")) == nil)
        #expect(try await reason("valid.test", try anyMethod("list.pem")) == nil)
    }

    @Test(
        arguments: [
            ("bad.test", []), ("valid.test", []), ("valid.test", ["foreign.pem"]),
            ("valid.test", ["old.pem"]), ("bad.test", ["list.pem"]),
        ] as [(String, [String])]
    )
    func `without a good status by any method a server is refused`(host: String, lists: [String]) async throws
    {
        let reason = try await reason(host, try anyMethod(lists))
        if case .revocationCheckFailed = reason {} else { Issue.record("\(String(describing: reason))") }
        #expect(reason?.output?.transferFailure.code == 91)
    }

    @Test func `a required list and a method of any kind both apply if they are combined`() async throws {
        func policy(_ name: String) throws -> ServerTrustPolicy {
            let list = try CertificateRevocationList(contentsOf: server.authority.url(name))
            let flags: RevocationFlags = [.anyAvailableMethod(), .lists([list])]
            return .performRevokedEvaluation(validateHost: true, revocationFlags: flags)
        }
        #expect(try await reason("valid.test", try policy("list.pem")) == nil)
        #expect(try await reason("good.test", try policy("list.pem")) == nil)
        #expect(try await reason("bad.test", try policy("list.pem"))?.output?.transferFailure.code == 91)
        let unlisted = try await reason("good.test", try policy("foreign.pem"))
        #expect(unlisted?.output?.verdict?.problem == .revocationUnknown)
    }

    @Test func `a certificate on a list is refused if any method is accepted`() async throws {
        let reason = try await reason("revoked.test", try anyMethod("list.pem"))
        if case .revocationCheckFailed = reason {} else { Issue.record("\(String(describing: reason))") }
        #expect(reason?.output?.verdict?.problem == .revoked)
    }

    @Test func `a policy that accepts any revocation method still checks the chain and the host`()
        async throws
    {
        let expired = try await reason("expired.test", try anyMethod("list.pem"))
        #expect(expired?.output?.verdict?.problem == .expired)
        let wrong = try await reason("wrong.test", try anyMethod("list.pem"))
        if case .hostValidationFailed = wrong {} else { Issue.record("\(String(describing: wrong))") }
    }
}
