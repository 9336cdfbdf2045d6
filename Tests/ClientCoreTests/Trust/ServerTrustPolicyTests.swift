internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore
@testable internal import NetwatchTransport

extension AFError {
    var trustReason: ServerTrustFailureReason? {
        if case .serverTrustEvaluationFailed(let reason) = self { reason } else { nil }
    }
}

extension TestAuthority {
    /// Returns a certificate in DER.
    fileprivate func der(_ name: String) throws -> [UInt8] {
        Array(try Certificate(contentsOf: url("\(name).pem")).data)
    }
}

/// The engine settings of policies, and their evaluation of the certificates that a server presents.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct ServerTrustPolicyTests {
    private let authority: TestAuthority
    private let server: [UInt8]
    private let intermediate: [UInt8]
    private let root: [UInt8]

    init() throws {
        authority = try TestAuthority()
        _ = try authority.server("policy.test")
        server = try authority.der("policy.test")
        intermediate = try authority.der("intermediate")
        root = try authority.der("root")
    }

    private func presented(_ chain: [[UInt8]], code: Int32 = 0) -> PresentedTrust {
        let verdict = TrustVerdict(code: code, depth: 0, message: "words")
        return PresentedTrust(host: "policy.test", chain: chain, verdict: verdict)
    }

    private func certificate(_ der: [UInt8]) throws -> Certificate { try Certificate(data: Data(der)) }

    // MARK: Engine settings

    @Test func `the default evaluation equals the evaluation without a policy`() {
        #expect(ServerTrustPolicy.performDefaultEvaluation(validateHost: true).transferTrust == .standard)
        let lax = ServerTrustPolicy.performDefaultEvaluation(validateHost: false).transferTrust
        #expect(lax.anchors == .system)
        #expect(!lax.checksHost)
    }

    @Test func `pinned certificates are the only anchors if the chain is validated`() throws {
        let pins = [try certificate(root), try certificate(intermediate)]
        let trust = ServerTrustPolicy.pinCertificates(
            certificates: pins,
            validateCertificateChain: true,
            validateHost: true
        ).transferTrust
        guard case .only(let pem) = trust.anchors else { throw Unexpected(outcome: "\(trust)") }
        #expect(try Certificate.certificates(in: Data(pem)) == pins)
        #expect(trust.checksHost)
        #expect(trust.check == nil)
    }

    @Test func `revocation is checked by stapled responses and lists`() throws {
        let path = try authority.revocationList("policy.crl")
        let list = try CertificateRevocationList(contentsOf: URL(fileURLWithPath: path))
        let trust = ServerTrustPolicy.performRevokedEvaluation(
            validateHost: true,
            revocationFlags: [.stapledStatus, .lists([list])]
        ).transferTrust
        #expect(trust.anchors == .system)
        #expect(trust.requiresStapledStatus)
        #expect(try CertificateRevocationList(data: Data(trust.revocationLists)) == list)
    }

    @Test func `combined revocation flags keep all requirements`() throws {
        let path = try authority.revocationList("combined.crl")
        let list = try CertificateRevocationList(contentsOf: URL(fileURLWithPath: path))
        let either: RevocationFlags = [.stapledStatus, .anyAvailableMethod([list])]
        #expect(either.requiresStapledStatus && either.acceptsAnyMethod && either.lists == [list])
        let strict: RevocationFlags = [.lists([list]), .anyAvailableMethod()]
        #expect(strict.requiresList && strict.acceptsAnyMethod && strict.lists == [list])
        let nested: RevocationFlags = [strict]
        #expect(!either.requiresList && nested == strict)
        let none: RevocationFlags = []
        #expect(!none.acceptsAnyMethod && !none.requiresList)
        let policy = ServerTrustPolicy.performRevokedEvaluation(
            validateHost: true,
            revocationFlags: .anyAvailableMethod()
        )
        try policy.check()
        #expect(policy.transferTrust.acceptsAnyRevocationSource)
    }

    @Test func `without evaluation no authority is required`() {
        let trust = ServerTrustPolicy.disableEvaluation.transferTrust
        #expect(trust.anchors == nil)
        #expect(!trust.checksHost)
        #expect(trust.check == nil)
    }

    // MARK: Evaluation

    private func accepts(_ policy: ServerTrustPolicy, _ presented: PresentedTrust) -> Bool? {
        policy.transferTrust.check?.evaluate(presented)
    }

    @Test func `without chain validation any certificate of the chain matches by its bytes`() throws {
        for pin in [server, intermediate, root] {
            let policy = ServerTrustPolicy.pinCertificates(
                certificates: [try certificate(pin)],
                validateCertificateChain: false,
                validateHost: true
            )
            #expect(policy.transferTrust.anchors == nil)
            #expect(!policy.transferTrust.checksHost)
            #expect(accepts(policy, presented([server, intermediate, root], code: 10)) == true)
            #expect(accepts(policy, presented([server, intermediate, root].filter { $0 != pin })) == false)
        }
    }

    @Test func `any key of the chain matches, and the chain is validated on request`() throws {
        let key = try certificate(intermediate).publicKey
        func policy(chain: Bool) -> ServerTrustPolicy {
            .pinPublicKeys(publicKeys: [key], validateCertificateChain: chain, validateHost: true)
        }
        #expect(policy(chain: true).transferTrust.anchors == .system)
        #expect(policy(chain: true).transferTrust.checksHost)
        #expect(policy(chain: false).transferTrust.anchors == nil)
        #expect(!policy(chain: false).transferTrust.checksHost)
        let expired = presented([server, intermediate], code: 10)
        #expect(accepts(policy(chain: true), presented([server, intermediate])) == true)
        #expect(accepts(policy(chain: true), expired) == false)
        #expect(accepts(policy(chain: false), expired) == true)
        #expect(accepts(policy(chain: false), presented([server])) == false)
    }

    @Test func `a pinned certificate outside of the chain is ignored`() throws {
        _ = try authority.selfSigned("stranger.test")
        let stranger = try authority.der("stranger.test")
        for pin in [server, intermediate, root] {
            let pinned = try certificate(pin)
            for chain in [true, false] {
                let keys = ServerTrustPolicy.pinPublicKeys(
                    publicKeys: [pinned.publicKey],
                    validateCertificateChain: chain,
                    validateHost: true
                )
                #expect(accepts(keys, presented([stranger, server, intermediate, root])) == false)
            }
            let certificates = ServerTrustPolicy.pinCertificates(
                certificates: [pinned],
                validateCertificateChain: false,
                validateHost: true
            )
            #expect(accepts(certificates, presented([stranger, server, intermediate, root])) == false)
        }
    }

    @Test func `an issuer is recognized by its signature, not by its name`() throws {
        // An unrelated authority whose certificates have the same names.
        let impostor = try TestAuthority()
        let forged = try impostor.der("intermediate")
        #expect(try certificate(forged).subject == (try certificate(intermediate).subject))
        let chain = CertificateChain.linked([server, forged, intermediate, forged, root])
        #expect(chain.compactMap { $0.x509.der } == [server, intermediate, root].map { Data($0) })
    }

    @Test func `the number of evaluated certificates is limited`() throws {
        let impostor = try TestAuthority()
        let forged = try impostor.der("intermediate")
        let chain = CertificateChain.linked([server] + Array(repeating: forged, count: 199) + [intermediate])
        #expect(chain.count == 1)
        #expect(CertificateChain.linked([]).isEmpty)
        #expect(CertificateChain.linked([[1, 2, 3], []]).isEmpty)
    }

    @Test func `a custom evaluation receives the chain, the host and the verdict`() throws {
        let seen = Recorder<ServerTrust>()
        let policy = ServerTrustPolicy.customEvaluation { trust, host in
            seen.record(trust)
            return host == "policy.test"
        }
        #expect(policy.transferTrust.anchors == nil)
        #expect(!policy.transferTrust.checksHost)
        #expect(accepts(policy, presented([server, intermediate, root], code: 10)) == true)
        let trust = try #require(seen.values.first)
        #expect(
            trust.certificates.map(\.subject) == [
                "CN=policy.test", "CN=netwatch intermediate", "CN=netwatch root",
            ]
        )
        #expect(trust.publicKeys == trust.certificates.map(\.publicKey))
        #expect(trust.verdict.problem == .expired)
        #expect(trust.certificateNamesHost)
        #expect(!trust.isTrustedByDefault)
    }

    @Test(
        arguments: [
            ("policy.test", true), ("POLICY.test", true), ("other.test", false), ("a.policy.test", false),
            ("127.0.0.1", false), ("", false),
        ]
    )
    func `a certificate names a host according to RFC 6125`(host: String, expected: Bool) throws {
        let shown = PresentedTrust(
            host: host,
            chain: [server],
            verdict: TrustVerdict(code: 0, depth: 0, message: "ok")
        )
        #expect(ServerTrust(shown).certificateNamesHost == expected)
        #expect(ServerTrust(shown).isTrustedByDefault == expected)
    }

    // MARK: Policies that trust no server

    @Test func `a policy that can trust no server reports an error`() throws {
        _ = try authority.server("gone.test", validity: ("20200101000000Z", "20210101000000Z"))
        let gone = try certificate(try authority.der("gone.test"))
        func reason(_ policy: ServerTrustPolicy) -> AFError.ServerTrustFailureReason? {
            afError { try policy.check() }?.trustReason
        }
        func pins(_ pins: [Certificate], chain: Bool = true) -> ServerTrustPolicy {
            .pinCertificates(certificates: pins, validateCertificateChain: chain, validateHost: true)
        }
        if case .noCertificatesFound = reason(pins([])) {} else { Issue.record("no certificates") }
        if case .noCertificatesFound = reason(pins([], chain: false)) {
        } else {
            Issue.record("no certificates")
        }
        if case .pinnedCertificatesExpired([gone]) = reason(pins([gone])) {} else { Issue.record("expired") }
        #expect(reason(pins([gone], chain: false)) == nil)
        #expect(reason(pins([gone, try certificate(root)])) == nil)
        let keys = ServerTrustPolicy.pinPublicKeys(
            publicKeys: [],
            validateCertificateChain: false,
            validateHost: false
        )
        if case .noPublicKeysFound = reason(keys) {} else { Issue.record("no keys") }
        let nothing = ServerTrustPolicy.performRevokedEvaluation(validateHost: true, revocationFlags: [])
        if case .noRevocationCheck = reason(nothing) {} else { Issue.record("no flags") }
        #expect(reason(.disableEvaluation) == nil)
    }

    @Test func `a policy with only expired lists reports an error`() throws {
        let old = try authority.revocationList(
            "old.crl",
            "-crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z"
        )
        let list = try CertificateRevocationList(contentsOf: URL(fileURLWithPath: old))
        let policy = ServerTrustPolicy.performRevokedEvaluation(
            validateHost: true,
            revocationFlags: .lists([list])
        )
        let reason = afError { try policy.check() }?.trustReason
        if case .revocationListsExpired([list]) = reason {
        } else {
            Issue.record("\(String(describing: reason))")
        }
    }

    // MARK: Files

    @Test func `all keys of a file are pins, and a damaged certificate is reported`() throws {
        let scratch = try ScratchDirectory()
        let (one, other) = ("intermediate.pem", "root.pem")
        let page = try DocumentationPage("Sources/ClientCore/ClientCore.docc/Trust.md")
        let documented = try #require(page.commands(under: "Pins that survive a renewal").first)
        let key = try authority.openssl(
            documented.replacing("-in server.pem", with: "-in \(other)")
                .replacing(" > /etc/shop/keys/server.pem", with: "")
        )
        let pem = try String(decoding: authority.data(one), as: UTF8.self)
        try scratch.write(Array((key + "\n" + pem + "\n" + key).utf8), to: "keys.pem")
        let directory = URL(fileURLWithPath: scratch.path)
        let expected = try [root, intermediate, root].map(certificate).map(\.publicKey)
        #expect(try ServerTrustPolicy.publicKeys(in: directory) == expected)
        let damaged = pem.replacing("MII", with: "AII")
        let error = #expect(throws: InvalidCredential.self) { try PublicKey(data: Data(damaged.utf8)) }
        #expect(error?.kind == .certificate)
    }

    @Test func `pins are read from a directory, and the error names an invalid file`() throws {
        let scratch = try ScratchDirectory()
        for name in ["b.cer", "c.PEM"] {
            try scratch.write(Array(try authority.data("intermediate.pem")), to: name)
        }
        try scratch.write(root, to: "a.DER")
        try scratch.write([1], to: "notes.txt")
        let directory = URL(fileURLWithPath: scratch.path)
        let expected = try [root, intermediate, intermediate].map(certificate)
        #expect(try ServerTrustPolicy.certificates(in: directory) == expected)
        #expect(try ServerTrustPolicy.publicKeys(in: directory) == expected.map(\.publicKey))
        try scratch.write([1], to: "aa.crt")
        #expect(throws: InvalidCredential.self) { try ServerTrustPolicy.certificates(in: directory) }
        do {
            _ = try ServerTrustPolicy.publicKeys(in: directory)
            Issue.record("an invalid file was accepted")
        } catch {
            #expect(error.file == scratch.file("aa.crt"))
        }
        for (name, errno) in [("missing", ENOENT), ("a.DER", ENOTDIR)] {
            do {
                _ = try ServerTrustPolicy.certificates(in: URL(fileURLWithPath: scratch.file(name)))
                Issue.record("`\(name)` was accepted as a directory")
            } catch {
                #expect(error.reason == .unreadable(errno: errno) && error.file == scratch.file(name))
            }
        }
    }
}
