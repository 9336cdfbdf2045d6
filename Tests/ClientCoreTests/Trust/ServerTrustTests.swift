internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// The outcome of a request to a server.
private enum Outcome: Equatable, Sendable {
    case answered
    case chain(ServerTrust.Problem?)
    case host
    case revocation(ServerTrust.Problem?)
    case certificatePin
    case keyPin
    case custom
    case other(String)

    init(_ response: DefaultDataResponse) {
        switch (response.error as? AFError)?.trustReason {
        case nil where response.error == nil: self = .answered
        case .defaultEvaluationFailed(let output): self = .chain(output.verdict?.problem)
        case .hostValidationFailed: self = .host
        case .revocationCheckFailed(let output): self = .revocation(output.verdict?.problem)
        case .certificatePinningFailed: self = .certificatePin
        case .publicKeyPinningFailed: self = .keyPin
        case .customEvaluationFailed: self = .custom
        default: self = .other("\(String(describing: response.error))")
        }
    }
}

/// Requests to nginx, whose certificates are issued by the tests' authority.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct ServerTrustTests {
    private let server: TLSServer

    init() async throws {
        server = try await TLSServer.shared()
    }

    private func outcome(_ host: String, _ policy: ServerTrustPolicy?) async -> Outcome {
        let session = server.session(policy.map { [host: $0] } ?? [:])
        let response = await session.request("\(server.url(host))/").response()
        if response.error != nil {
            #expect(response.error?.transferFailure?.bytesSent == 0, "\(host)")
            #expect(response.response == nil, "\(host)")
        }
        return Outcome(response)
    }

    private func pins(_ names: String..., chain: Bool = true, host: Bool = true) throws -> ServerTrustPolicy {
        .pinCertificates(
            certificates: try names.map(server.certificate),
            validateCertificateChain: chain,
            validateHost: host
        )
    }

    private func keys(_ names: String..., chain: Bool) throws -> ServerTrustPolicy {
        .pinPublicKeys(
            publicKeys: try names.map { try server.certificate($0).publicKey },
            validateCertificateChain: chain,
            validateHost: true
        )
    }

    // MARK: The system's authorities

    @Test(
        arguments: [
            ("valid.test", .chain(.unknownIssuer)), ("expired.test", .chain(.unknownIssuer)),
            ("self.test", .chain(.selfSigned)),
        ] as [(String, Outcome)]
    )
    private func `servers that no system authority has issued are refused`(host: String, expected: Outcome)
        async throws
    {
        #expect(await outcome(host, nil) == expected)
        #expect(await outcome(host, .performDefaultEvaluation(validateHost: false)) == expected)
        let session = server.session(nil)
        let standard = await session.request("\(server.url(host))/").response()
        #expect(Outcome(standard) == expected)
    }

    // MARK: Pinned certificates

    @Test(arguments: ["root", "intermediate", "valid.test"])
    func `a pinned root, intermediate or server certificate is accepted`(pin: String) async throws {
        #expect(await outcome("valid.test", try pins(pin)) == .answered)
        #expect(await outcome("www.wild.test", try pins(pin)) == .answered)
        #expect(await outcome("localhost", try pins(pin)) == .answered)
        #expect(await outcome("127.0.0.1", try pins(pin)) == .answered)
    }

    @Test(
        arguments: [
            ("expired.test", .chain(.expired)), ("future.test", .chain(.notYetValid)), ("wrong.test", .host),
            ("self.test", .certificatePin),
        ] as [(String, Outcome)]
    )
    private func `a pinned root or intermediate excuses no other problem`(host: String, expected: Outcome)
        async throws
    {
        #expect(await outcome(host, try pins("root")) == expected)
        #expect(await outcome(host, try pins("intermediate")) == expected)
    }

    @Test func `a server without a pinned certificate is refused, and the error lists both`() async throws {
        let policy = try pins("self.test", "wrong.test")
        let session = server.session(["valid.test": policy])
        let response = await session.request("\(server.url("valid.test"))/").response()
        let error = try #require(response.error as? AFError)
        guard case .certificatePinningFailed(let output, let pinned) = error.trustReason else {
            Issue.record("\(error)")
            return
        }
        #expect(output.host == "valid.test")
        #expect(output.certificates.first == (try server.certificate("valid.test")))
        #expect(output.verdict?.problem == .unknownIssuer)
        #expect(output.missingIssuer == "CN=netwatch root")
        #expect(output.transferFailure.code == 60)
        #expect(output.transferFailure.phase == .tls)
        #expect((error as any Error).transferFailure == output.transferFailure)
        #expect(pinned == [try server.certificate("self.test"), try server.certificate("wrong.test")])
        #expect(
            error.localizedDescription.contains(
                "its chain contains none of the pinned certificates: CN=self.test"
            )
        )
        #expect(
            error.localizedDescription.contains("it presented CN=valid.test (by CN=netwatch intermediate")
        )
    }

    @Test func `a missing intermediate is distinguished from a missing pin`() async throws {
        let session = server.session(["alone.test": try pins("root")])
        let response = await session.request("\(server.url("alone.test"))/").response()
        let error = try #require(response.error as? AFError)
        guard case .certificatePinningFailed(let output, _) = error.trustReason else {
            Issue.record("\(error)")
            return
        }
        #expect(output.certificates == [try server.certificate("alone.test")])
        #expect(output.missingIssuer == "CN=netwatch intermediate")
        let words =
            "the certificate of the issuer `CN=netwatch intermediate` is missing: unable to get local issuer certificate "
            + "(20, certificate 0)"
        #expect(error.localizedDescription.contains(words), "\(error.localizedDescription)")
        #expect(await outcome("alone.test", try pins("intermediate")) == .answered)
        #expect(await outcome("alone.test", try pins("alone.test")) == .answered)
    }

    @Test func `a self-signed certificate can be pinned`() async throws {
        #expect(await outcome("self.test", try pins("self.test")) == .answered)
    }

    @Test func `the host name is checked if the policy requires it`() async throws {
        #expect(await outcome("wrong.test", try pins("root", host: false)) == .answered)
        #expect(await outcome("wrong.test", try pins("wrong.test", host: true)) == .host)
    }

    @Test func `without chain validation only the certificate's bytes count, not its dates or names`()
        async throws
    {
        for host in ["expired.test", "future.test", "wrong.test", "self.test", "valid.test"] {
            #expect(await outcome(host, try pins(host, chain: false)) == .answered, "\(host)")
        }
        #expect(await outcome("expired.test", try pins("intermediate", chain: false)) == .answered)
        #expect(await outcome("expired.test", try pins("valid.test", chain: false)) == .certificatePin)
        // The server does not send the root, and this system does not have it.
        #expect(await outcome("valid.test", try pins("root", chain: false)) == .certificatePin)
    }

    // MARK: Pinned keys

    @Test func `without chain validation any key of the chain is accepted`() async throws {
        for pin in ["expired.test", "intermediate"] {
            #expect(await outcome("expired.test", try keys(pin, chain: false)) == .answered, "\(pin)")
        }
        #expect(await outcome("expired.test", try keys("valid.test", chain: false)) == .keyPin)
    }

    @Test func `a pinned key does not replace a trusted authority`() async throws {
        #expect(await outcome("valid.test", try keys("valid.test", chain: true)) == .chain(.unknownIssuer))
    }

    // MARK: Custom and disabled evaluation

    @Test func `a custom evaluation decides alone and receives all details`() async throws {
        let seen = Recorder<ServerTrust>()
        let session = server.session([
            "expired.test": .customEvaluation { trust, host in
                seen.record(trust)
                return host == trust.host
            },
            "valid.test": .customEvaluation { _, _ in false },
        ])
        let lenient = await session.request("\(server.url("expired.test"))/").response()
        #expect(Outcome(lenient) == .answered)
        let strict = await session.request("\(server.url("valid.test"))/").response()
        #expect(Outcome(strict) == .custom)
        let trust = try #require(seen.values.first)
        #expect(trust.host == "expired.test")
        #expect(
            trust.certificates == [
                try server.certificate("expired.test"), try server.certificate("intermediate"),
            ]
        )
        #expect(trust.verdict.problem == .unknownIssuer)
        #expect(trust.certificateNamesHost)
        #expect(!trust.isTrustedByDefault)
    }

    @Test(arguments: ["valid.test", "expired.test", "wrong.test", "self.test", "revoked.test"])
    func `without evaluation every server is trusted`(host: String) async throws {
        #expect(await outcome(host, .disableEvaluation) == .answered)
    }

    // MARK: Versions of TLS

    @Test(arguments: TLSServer.Version.allCases)
    func `every TLS version is evaluated in the same way`(version: TLSServer.Version) async throws {
        let server = try await TLSServer.shared(version)
        let root = try server.certificate("root")
        let key = try server.certificate("intermediate").publicKey
        let pins = ServerTrustPolicy.pinCertificates(
            certificates: [root],
            validateCertificateChain: true,
            validateHost: true
        )
        let keys = ServerTrustPolicy.pinPublicKeys(
            publicKeys: [key],
            validateCertificateChain: false,
            validateHost: false
        )
        let cases: [(String, ServerTrustPolicy, Outcome)] = [
            ("valid.test", pins, .answered), ("expired.test", pins, .chain(.expired)),
            ("wrong.test", pins, .host), ("self.test", pins, .certificatePin),
            ("expired.test", keys, .answered),
            ("self.test", keys, .keyPin), ("self.test", .disableEvaluation, .answered),
            ("valid.test", .customEvaluation { _, _ in false }, .custom),
        ]
        for (host, policy, expected) in cases {
            let session = server.session([host: policy])
            let response = await session.request("\(server.url(host))/").response()
            #expect(Outcome(response) == expected, "\(host)")
            let spoken = response.response?.value(forHTTPHeaderField: "Protocol")
            #expect(spoken == (expected == .answered ? version.rawValue : nil))
        }
    }

    // MARK: Hosts

    @Test func `a host without a required policy is refused before connecting`() async throws {
        let manager = ServerTrustPolicyManager(
            policies: ["valid.test": try pins("root")],
            allHostsMustBeEvaluated: true
        )
        let session = server.session(manager)
        let valid = await session.request("\(server.url("valid.test"))/").response()
        #expect(Outcome(valid) == .answered)
        let other = await session.request("\(server.url("wrong.test"))/").response()
        guard case .noRequiredEvaluator("wrong.test") = (other.error as? AFError)?.trustReason else {
            Issue.record("\(String(describing: other.error))")
            return
        }
        #expect(other.error?.transferFailure?.phase == .prepare)
    }

    @Test func `pins that cannot match prevent every request`() async throws {
        let session = server.session(["valid.test": try pins("expired.test")])
        for _ in 0..<2 {
            let response = await session.request("\(server.url("valid.test"))/").response()
            guard case .pinnedCertificatesExpired = (response.error as? AFError)?.trustReason else {
                Issue.record("\(String(describing: response.error))")
                continue
            }
            #expect(response.error?.transferFailure?.phase == .prepare)
        }
    }

    @Test func `each hop of a redirect is evaluated by its own host's policy`() async throws {
        let session = server.session([
            "self.test": .disableEvaluation, "valid.test": try pins("root"), "wrong.test": try pins("root"),
        ])
        let valid = await session.request("\(server.url("self.test"))/to/valid").response()
        #expect(Outcome(valid) == .answered)
        #expect(valid.response?.url?.host == "valid.test")
        let wrong = await session.request("\(server.url("self.test"))/to/wrong").response()
        #expect(Outcome(wrong) == .host)
        // The reverse: the lax policy of the redirect's target does not apply to the first host.
        let strict = server.session(["self.test": try pins("root"), "valid.test": .disableEvaluation])
        let refused = await strict.request("\(server.url("self.test"))/to/valid").response()
        #expect(Outcome(refused) == .certificatePin)
    }

    @Test(arguments: [RedirectOptions(), .insecure])
    func `a host with a policy is never left for plain http, and others only if permitted`(
        redirects: RedirectOptions
    ) async throws {
        let session = server.session(["self.test": .disableEvaluation, "valid.test": try pins("root")])
        session.requestOptions.redirects = redirects
        for host in ["self.test", "valid.test"] {
            let response = await session.request("\(server.url(host))/to/plain").response()
            if host == "self.test", redirects.contains(.insecure) {
                // The server's answer to plain http on its TLS port.
                #expect(response.response?.statusCode == 400)
                continue
            }
            guard case AFError.redirectRefused(.insecure(let source, let target))? = response.error else {
                Issue.record("\(host): \(String(describing: response.error))")
                continue
            }
            #expect(source.host == host && target.scheme == "http")
            #expect((response.error as? AFError)?.isRedirectRefusedError == true)
        }
    }

    @Test(
        arguments: [
            ("self.test", []), ("valid.test", []), ("valid.test", .insecure),
        ] as [(String, RedirectOptions)]
    )
    func `a URL for plain http that the delegate has chosen is refused, too`(
        host: String,
        redirects: RedirectOptions
    ) async throws {
        let session = server.session(["self.test": .disableEvaluation, "valid.test": try pins("root")])
        session.requestOptions.redirects = redirects
        let plain = server.url("localhost").replacing("https:", with: "http:")
        session.delegate.taskWillPerformHTTPRedirection = { _, _, _, request in
            var request = request
            request.url = URL(string: plain)
            return request
        }
        let response = await session.request("\(server.url(host))/to/valid").response()
        guard case AFError.redirectRefused(.insecure(let source, let target))? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(source.host == host && target.absoluteString.hasPrefix(plain))
    }

    private final class Changing: ServerTrustPolicyManager, @unchecked Sendable {
        private let lock = NSLock()
        private var policy: ServerTrustPolicy?

        func set(_ policy: ServerTrustPolicy) { lock.withLock { self.policy = policy } }
        override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
            lock.withLock { policy }
        }
    }

    @Test func `a request with a stricter policy does not reuse a connection of a weaker one`() async throws {
        let manager = Changing(policies: [:])
        let session = server.session(manager)
        let url = "\(server.url("self.test"))/"
        func get(_ policy: ServerTrustPolicy) async -> (Outcome, connection: String?) {
            manager.set(policy)
            let response = await session.request(url).response()
            return (Outcome(response), response.response?.value(forHTTPHeaderField: "Connection-Number"))
        }
        let lax = await get(.disableEvaluation)
        let again = await get(.disableEvaluation)
        #expect(lax.0 == .answered)
        #expect(lax.connection == again.connection)
        #expect(await get(try pins("root")).0 == .certificatePin)
        #expect(await get(try keys("valid.test", chain: false)).0 == .keyPin)
        #expect(await get(.customEvaluation { _, _ in false }).0 == .custom)
        let pinned = await get(try pins("self.test"))
        #expect(pinned.0 == .answered)
        #expect(pinned.connection != lax.connection)
        #expect(await get(.disableEvaluation).connection == lax.connection)
    }

    /// The server sends no certificates when a TLS session is resumed, so there would be nothing to evaluate.
    @Test func `a TLS session of an earlier connection does not bypass the evaluation`() async throws {
        for _ in 0..<10 {
            #expect(await outcome("self.test", .customEvaluation { _, _ in true }) == .answered)
            #expect(await outcome("self.test", .customEvaluation { _, _ in false }) == .custom)
            #expect(await outcome("self.test", try keys("valid.test", chain: false)) == .keyPin)
        }
    }

    @Test func `a manager subclass can match wildcards`() async throws {
        final class Wildcards: ServerTrustPolicyManager, @unchecked Sendable {
            override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
                host.hasSuffix(".wild.test")
                    ? policies["*.wild.test"] : super.serverTrustPolicy(forHost: host)
            }
        }
        let session = server.session(Wildcards(policies: ["*.wild.test": try pins("root")]))
        let wild = await session.request("\(server.url("www.wild.test"))/").response()
        #expect(Outcome(wild) == .answered)
        let other = await session.request("\(server.url("valid.test"))/").response()
        #expect(Outcome(other) == .chain(.unknownIssuer))
    }
}
