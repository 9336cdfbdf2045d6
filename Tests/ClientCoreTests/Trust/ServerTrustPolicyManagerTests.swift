internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Assigning policies to hosts.
@Suite(.timeLimit(.minutes(5))) struct ServerTrustPolicyManagerTests {
    @Test(
        arguments: [
            ("example.com", "example.com"), ("Example.COM", "example.com"), ("example.com.", "example.com"),
            ("[::1]", "::1"), ("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("127.0.0.1", "127.0.0.1"),
            ("bücher.example", "xn--bcher-kva.example"),
        ]
    )
    func `different spellings of a host are the same host`(text: String, expected: String) {
        #expect(TrustHost.normalized(text) == expected)
        let manager = ServerTrustPolicyManager(policies: [text: .disableEvaluation])
        #expect(manager.serverTrustPolicy(forHost: expected) == .disableEvaluation)
        #expect(manager.serverTrustPolicy(forHost: text) == .disableEvaluation)
        #expect(manager.serverTrustPolicy(forHost: "other.example") == nil)
    }

    @Test(arguments: ["https://0x7f.1/", "https://2130706433/", "https://127.1/", "https://[0::1]/"])
    func `the host is the one that libcurl connects to`(text: String) throws {
        let policies: [String: ServerTrustPolicy] = [
            "127.0.0.1": .disableEvaluation, "::1": .disableEvaluation,
        ]
        let trust = SessionTrust(ServerTrustPolicyManager(policies: policies))
        #expect(try trust.decision(for: URL(string: text))?.policy == .disableEvaluation)
    }

    @Test(
        arguments: [
            "", "https://example.com", "example.com:443", "example.com/", "*.example.com", "a b",
            "user@example.com", "[::1]:443",
        ]
    )
    func `an invalid host is refused, and so is every request`(text: String) throws {
        let manager = ServerTrustPolicyManager(policies: [text: .disableEvaluation])
        let trust = SessionTrust(manager)
        let url = try #require(URL(string: "https://example.com/"))
        for error in [afError { try manager.check() }, afError { _ = try trust.decision(for: url) }] {
            guard case .invalidPolicyHost(text) = error?.trustReason else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func `two policies for the same host are refused`() {
        let manager = ServerTrustPolicyManager(policies: [
            "example.com": .disableEvaluation,
            "EXAMPLE.com.": .performDefaultEvaluation(validateHost: true),
        ])
        let reason = afError { try manager.check() }?.trustReason
        if case .invalidPolicyHost = reason {} else { Issue.record("\(String(describing: reason))") }
    }

    private final class Wildcards: ServerTrustPolicyManager, @unchecked Sendable {
        let asked = Recorder<String>()

        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
            asked.record(host)
            return host.hasSuffix(".example.com") ? policies["*.example.com"] : nil
        }
    }

    @Test func `a subclass is called for each hop`() throws {
        let manager = Wildcards(policies: ["*.example.com": .disableEvaluation])
        let trust = SessionTrust(manager)
        for host in ["api.Example.com", "api.example.com", "example.com."] {
            let url = try #require(URL(string: "https://\(host)/"))
            let decision = try #require(try trust.decision(for: url))
            #expect(decision.policy == (host.hasPrefix("api") ? .disableEvaluation : nil))
        }
        #expect(manager.asked.values == ["api.example.com", "api.example.com", "example.com"])
    }

    @Test func `hosts without TLS, and sessions without a manager, need no policy`() throws {
        let http = try #require(URL(string: "http://example.com/"))
        let https = try #require(URL(string: "https://example.com/"))
        let strict = ServerTrustPolicyManager(policies: [:], allHostsMustBeEvaluated: true)
        #expect(try SessionTrust(strict).decision(for: http) == nil)
        #expect(try SessionTrust(nil).decision(for: https) == nil)
        let lax = SessionTrust(ServerTrustPolicyManager(policies: [:]))
        #expect(try lax.decision(for: https)?.trust == .standard)
        let reason = afError { _ = try SessionTrust(strict).decision(for: https) }?.trustReason
        if case .noRequiredEvaluator("example.com") = reason {
        } else {
            Issue.record("\(String(describing: reason))")
        }
    }

    @Test func `equal policies result in equal trust, so that connections are shared`() throws {
        let evaluation = ServerTrustPolicy.customEvaluation { _, _ in true }
        let manager = ServerTrustPolicyManager(policies: [
            "a.example": evaluation, "b.example": evaluation,
            "c.example": .customEvaluation { _, _ in true },
        ])
        let session = SessionTrust(manager)
        func trust(_ host: String) throws -> TransferTrust? {
            try session.decision(for: URL(string: "https://\(host)/"))?.trust
        }
        #expect(try trust("a.example") == trust("a.example"))
        #expect(try trust("a.example") == trust("b.example"))
        #expect(try trust("a.example") != trust("c.example"))
    }

    private final class ChangingPolicyManager: ServerTrustPolicyManager, @unchecked Sendable {
        private let stable = ServerTrustPolicy.customEvaluation { _, _ in true }

        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
            host == "stable.example" ? stable : .customEvaluation { _, _ in true }
        }
    }

    @Test func `policies created for each request do not accumulate, and do not evict one in use`() throws {
        let session = SessionTrust(ChangingPolicyManager(policies: [:]))
        let url = URL(string: "https://example.com/")
        func stableTrust() throws -> TransferTrust? {
            try session.decision(for: URL(string: "https://stable.example/"))?.trust
        }
        let first = try stableTrust()
        for _ in 0..<200 {
            _ = try session.decision(for: url)
            #expect(try stableTrust() == first)
        }
        #expect(session.cachedCount == 64)
    }

    @Test func `a client identity is sent only to its host`() throws {
        let authority = try TestAuthority.shared()
        let issued = try authority.client("manager.test")
        let identity = try ClientIdentity(
            certificatesAt: URL(fileURLWithPath: issued.chain),
            privateKeyAt: URL(fileURLWithPath: issued.key)
        )
        let manager = ServerTrustPolicyManager(policies: [:], clientIdentities: ["a.example": identity])
        let session = SessionTrust(manager)
        #expect(
            try session.decision(for: URL(string: "https://A.example/"))?.trust.identity == identity.transfer
        )
        #expect(try session.decision(for: URL(string: "https://b.example/"))?.trust.identity == nil)
    }

    @Test(arguments: [77 as Int32])
    func `a request refused before sending has a transfer failure of its configuration`(code: Int32) {
        let error = AFError.serverTrustEvaluationFailed(reason: .noCertificatesFound)
        #expect((error as any Error).transferFailure?.code == code)
        #expect((error as any Error).transferFailure?.phase == .prepare)
        #expect((error as any Error).transferFailure?.bytesSent == 0)
        #expect(error.isServerTrustEvaluationError)
        #expect(
            error.localizedDescription
                == "The server is not trusted: the policy pins certificates but contains none"
        )
    }
}
