import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section on security.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct ServerTrustGuideTests {
    private let authority: TestAuthority
    private let nginx: Nginx

    init() async throws {
        let authority = try TestAuthority()
        let server = try authority.server("server", for: "DNS:localhost,IP:127.0.0.1")
        nginx = try await Nginx(in: try ScratchDirectory()) { port in
            """
            server {
                listen 127.0.0.1:\(port) ssl; ssl_certificate \(server.chain); ssl_certificate_key \(server.key);
                location / { return 200 "hello"; }
            }
            """
        }
        self.authority = authority
    }

    private func url(_ host: String) -> String {
        nginx.url.replacingOccurrences(of: "http://127.0.0.1", with: "https://\(host)")
    }

    /// Returns a bundle with the authority's root among other resources, like the bundle of a program.
    private func bundle() throws -> (ScratchDirectory, Bundle) {
        let scratch = try ScratchDirectory()
        try scratch.write(Array(try Data(contentsOf: URL(fileURLWithPath: authority.root))), to: "root.cer")
        try scratch.write(Array("nothing".utf8), to: "broken.crt")
        return (scratch, try #require(Bundle(path: scratch.path)))
    }

    @Test func `a manager maps hosts to policies`() async throws {
        let (scratch, bundle) = try bundle()
        let serverTrustPolicies: [String: ServerTrustPolicy] = [
            "localhost": .pinCertificates(
                certificates: ServerTrustPolicy.certificates(in: bundle),
                validateCertificateChain: true,
                validateHost: true
            ),
            "127.0.0.1": .disableEvaluation,
        ]
        let sessionManager = SessionManager(
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: serverTrustPolicies)
        )
        for host in ["localhost", "127.0.0.1"] {
            let response = await sessionManager.request(url(host)).responseString()
            #expect(response.result.value == "hello", "\(host)")
        }
        withExtendedLifetime(scratch) {}
    }

    @Test func `a program evaluates a policy with its own certificates`() throws {
        let chain = URL(fileURLWithPath: authority.file("server.chain"))
        let certificates = try Certificate.certificates(in: Data(contentsOf: chain))
        let trust = ServerTrust(certificates: certificates)
        #expect(trust.verdict.problem == .unknownIssuer)
        #expect(trust.certificates == certificates)
        let root = try Certificate(contentsOf: URL(fileURLWithPath: authority.root))
        let pinned = ServerTrustPolicy.pinCertificates(
            certificates: [root],
            validateCertificateChain: true,
            validateHost: true
        )
        #expect(pinned.evaluate(trust, forHost: "localhost"))
        #expect(!pinned.evaluate(trust, forHost: "example.com"))
        let standard = ServerTrustPolicy.performDefaultEvaluation(validateHost: true)
        #expect(!standard.evaluate(trust, forHost: "localhost"))
        let empty = ServerTrust(certificates: [])
        #expect(!empty.isTrustedByDefault && !pinned.evaluate(empty, forHost: "localhost"))
    }

    @Test func `pins are read from a bundle, and other files are skipped`() throws {
        let (scratch, bundle) = try bundle()
        let root = try Certificate(contentsOf: URL(fileURLWithPath: authority.root))
        #expect(ServerTrustPolicy.certificates(in: bundle) == [root])
        #expect(ServerTrustPolicy.publicKeys(in: bundle) == [root.publicKey])
        let serverTrustPolicy = ServerTrustPolicy.pinCertificates(
            certificates: ServerTrustPolicy.certificates(),
            validateCertificateChain: true,
            validateHost: true
        )
        // The tests' own bundle contains no certificates.
        #expect(throws: AFError.self) { try serverTrustPolicy.check() }
        withExtendedLifetime(scratch) {}
    }

    @Test func `keys are pinned, with and without chain validation`() async throws {
        let (scratch, bundle) = try bundle()
        let certificate = try Certificate(contentsOf: URL(fileURLWithPath: authority.file("server.pem")))
        let sessionManager = SessionManager(
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: [
                "localhost": .pinPublicKeys(
                    publicKeys: [certificate.publicKey],
                    validateCertificateChain: false,
                    validateHost: true
                ),
                "127.0.0.1": .pinPublicKeys(
                    publicKeys: ServerTrustPolicy.publicKeys(in: bundle),
                    validateCertificateChain: true,
                    validateHost: true
                ),
            ])
        )
        let pinned = await sessionManager.request(url("localhost")).responseString()
        #expect(pinned.result.value == "hello")
        // The system does not trust the root.
        let unknown = await sessionManager.request(url("127.0.0.1")).responseString()
        #expect((unknown.error as? AFError)?.isServerTrustEvaluationError == true)
        withExtendedLifetime(scratch) {}
    }

    @Test func `a custom evaluation decides`() async throws {
        let sessionManager = SessionManager(
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: [
                "localhost": .customEvaluation { serverTrust, host in
                    serverTrust.certificates.first?.subject == "CN=server" && host == "localhost"
                },
                "127.0.0.1": .customEvaluation { _, _ in false },
            ])
        )
        let trusted = await sessionManager.request(url("localhost")).responseString()
        #expect(trusted.result.value == "hello")
        let refused = await sessionManager.request(url("127.0.0.1")).responseString()
        guard case .serverTrustEvaluationFailed(.customEvaluationFailed)? = refused.error as? AFError else {
            Issue.record("\(String(describing: refused.error))")
            return
        }
    }

    class CustomServerTrustPolicyManager: ServerTrustPolicyManager {
        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
            var policy: ServerTrustPolicy?
            if host.hasPrefix("local") { policy = policies["local*"] }
            return policy
        }
    }

    @Test func `a subclass of the manager can match hosts differently`() async throws {
        let sessionManager = SessionManager(
            serverTrustPolicyManager: CustomServerTrustPolicyManager(policies: ["local*": .disableEvaluation])
        )
        let matched = await sessionManager.request(url("localhost")).responseString()
        #expect(matched.result.value == "hello")
        let other = await sessionManager.request(url("127.0.0.1")).responseString()
        #expect((other.error as? AFError)?.isServerTrustEvaluationError == true)
    }

    @Test func `the default evaluation refuses an unknown authority`() async throws {
        let sessionManager = SessionManager(
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: [
                "localhost": .performDefaultEvaluation(validateHost: true)
            ])
        )
        let response = await sessionManager.request(url("localhost")).responseString()
        guard
            case .serverTrustEvaluationFailed(.defaultEvaluationFailed(let output))? = response.error
                as? AFError
        else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(output.verdict?.problem == .unknownIssuer)
    }
}
