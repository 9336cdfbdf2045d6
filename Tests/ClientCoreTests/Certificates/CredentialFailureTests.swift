internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Credential files with missing, damaged or unexpected contents.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct CredentialFailureTests {
    private let authority: TestAuthority

    init() throws {
        authority = try TestAuthority()
    }

    private func reason(_ body: () throws -> Void) -> InvalidCredential.Reason? {
        failure(body)?.reason
    }

    private func failure(_ body: () throws -> Void) -> InvalidCredential? {
        do {
            try body()
            return nil
        } catch {
            return error as? InvalidCredential
        }
    }

    private func write(_ text: String, to name: String = "file") throws -> URL {
        URL(fileURLWithPath: try authority.scratch.write(Array(text.utf8), to: name))
    }

    @Test func `the error names the file, the problem and what is accepted`() throws {
        let file = try write("no certificate")
        let error = try #require(failure { _ = try Certificate(contentsOf: file) })
        #expect(error.file == file.path)
        #expect(error.kind == .certificate)
        #expect(error.reason == .unparseable)
        #expect(
            "\(error)" == """
                `\(file.path)` is not a certificate, or is damaged; PEM (`-----BEGIN CERTIFICATE-----`) or DER is accepted
                """
        )
        #expect((error as any Error).localizedDescription == "\(error)")
    }

    @Test func `an unreadable file is reported with its errno`() throws {
        let missing = authority.url("missing")
        #expect(reason { _ = try Certificate(contentsOf: missing) } == .unreadable(errno: ENOENT))
        #expect(failure { _ = try Certificate(contentsOf: missing) }?.file == missing.path)
        let directory = URL(fileURLWithPath: authority.scratch.path)
        #expect(reason { _ = try PublicKey(contentsOf: directory) } == .unreadable(errno: EISDIR))
        #expect(mkfifo(authority.file("pipe"), 0o600) == 0)
        let pipe = authority.url("pipe")
        #expect(reason { _ = try ClientIdentity(contentsOf: pipe) } == .unreadable(errno: EINVAL))
        let device = URL(fileURLWithPath: "/dev/zero")
        #expect(reason { _ = try Certificate(contentsOf: device) } == .unreadable(errno: EINVAL))
        let web = URL(string: "https://example.com/root.pem")!
        #expect(reason { _ = try Certificate(contentsOf: web) } == .unreadable(errno: EINVAL))
    }

    @Test func `an empty file is refused, and a file of 4 GiB is not read`() throws {
        let empty = try write("")
        #expect(reason { _ = try Certificate(contentsOf: empty) } == .empty)
        let huge = authority.url("huge")
        #expect(FileManager.default.createFile(atPath: huge.path, contents: nil))
        #expect(truncate(huge.path, 4 << 30) == 0)
        let limit = 1 << 20
        #expect(reason { _ = try Certificate(contentsOf: huge) } == .tooLarge(limit: limit))
        #expect(reason { _ = try PublicKey(contentsOf: huge) } == .tooLarge(limit: limit))
        #expect(reason { _ = try ClientIdentity(contentsOf: huge) } == .tooLarge(limit: limit))
        #expect(
            reason { _ = try CertificateRevocationList(contentsOf: huge) } == .tooLarge(limit: 64 << 20)
        )
        #expect(reason { _ = try Certificate(data: Data(count: limit + 1)) } == .tooLarge(limit: limit))
    }

    @Test func `a PEM file of another kind is reported by its label`() throws {
        let issued = try authority.client("client.test")
        let key = URL(fileURLWithPath: issued.key)
        let certificate = URL(fileURLWithPath: issued.certificate)
        #expect(reason { _ = try Certificate(contentsOf: key) } == .notFound(labels: ["PRIVATE KEY"]))
        #expect(reason { _ = try PublicKey(contentsOf: key) } == .notFound(labels: ["PRIVATE KEY"]))
        let list = failure { _ = try CertificateRevocationList(contentsOf: certificate) }
        #expect(list?.reason == .notFound(labels: ["CERTIFICATE"]))
        #expect(
            "\(list.map(String.init(describing:)) ?? "")".contains(
                "contains `CERTIFICATE` but no list of revoked certificates"
            )
        )
        let identity = failure { _ = try ClientIdentity(contentsOf: certificate) }
        #expect(identity?.reason == .notFound(labels: ["CERTIFICATE"]))
        #expect(identity?.kind == .privateKey)
        #expect(identity?.file == certificate.path)
        #expect(failure { _ = try ClientIdentity(contentsOf: key) }?.kind == .certificate)
    }

    @Test func `a missing or wrong passphrase is reported`() throws {
        let issued = try authority.client("client.test")
        try authority.openssl(
            """
            openssl pkey -in client.test.key -aes256 -passout pass:secret -out new.key
            openssl ec -in client.test.key -aes128 -passout pass:secret -out old.key
            openssl pkcs8 -topk8 -in client.test.key -outform der -v2 aes256 -passout pass:secret -out der.key
            openssl pkcs12 -export -in client.test.chain -inkey client.test.key -passout pass:secret -out client.p12
            """
        )
        let chain = URL(fileURLWithPath: issued.chain)
        for name in ["new.key", "old.key", "der.key", "client.p12"] {
            let file = authority.url(name)
            func read(_ passphrase: String?) throws {
                if name == "client.p12" {
                    _ = try ClientIdentity(contentsOf: file, passphrase: passphrase)
                } else {
                    _ = try ClientIdentity(certificatesAt: chain, privateKeyAt: file, passphrase: passphrase)
                }
            }
            #expect(reason { try read(nil) } == .passphraseMissing, "\(name)")
            #expect(reason { try read("guess") } == .passphraseWrong, "\(name)")
            #expect(reason { try read("") } == .passphraseWrong, "\(name)")
            #expect(failure { try read("guess") }?.file == file.path)
            #expect(failure { try read("secret") } == nil, "\(name)")
        }
    }

    @Test func `a key of another certificate is refused`() throws {
        let one = try authority.client("one.test")
        let other = try authority.client("other.test")
        let error = failure {
            _ = try ClientIdentity(
                certificatesAt: URL(fileURLWithPath: one.certificate),
                privateKeyAt: URL(fileURLWithPath: other.key)
            )
        }
        #expect(error?.reason == .keyMismatch)
        #expect(error?.file == other.key)
    }

    @Test func `an archive without a key or with a legacy cipher is refused`() throws {
        _ = try authority.client("client.test")
        try authority.openssl(
            """
            openssl pkcs12 -export -nokeys -in client.test.chain -passout pass:secret -out nokey.p12
            openssl pkcs12 -export -legacy -in client.test.chain -inkey client.test.key -passout pass:secret \
                -out legacy.p12
            openssl pkcs12 -export -nocerts -inkey client.test.key -in client.test.key -passout pass:secret \
                -out nocert.p12
            """
        )
        func failure(_ name: String) -> InvalidCredential? {
            self.failure { _ = try ClientIdentity(contentsOf: authority.url(name), passphrase: "secret") }
        }
        #expect(failure("nokey.p12")?.kind == .privateKey)
        #expect(failure("nokey.p12")?.reason == .notFound(labels: []))
        #expect(failure("nocert.p12")?.kind == .certificate)
        #expect(failure("legacy.p12")?.reason == .unsupported)
    }

    /// Applies to encrypted and unencrypted archives, with any passphrase.
    @Test(arguments: ["-keypbe NONE -certpbe NONE", ""])
    func `an archive without a digest is refused`(encryption: String) throws {
        _ = try authority.client("client.test")
        try authority.openssl(
            """
            openssl pkcs12 -export -nomac \(encryption) -in client.test.chain -inkey client.test.key \
                -passout pass:secret -out nomac.p12
            """
        )
        let file = authority.url("nomac.p12")
        for passphrase in [nil, "", "secret", "guess"] {
            let error = failure { _ = try ClientIdentity(contentsOf: file, passphrase: passphrase) }
            #expect(error?.reason == .digestMissing)
            #expect(error?.file == file.path)
            #expect(error?.description.contains("without a digest (MAC)") == true)
        }
    }

    @Test func `truncated or invalid PEM is reported as damaged`() throws {
        for text in [
            "-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END X-----",
            "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "-----BEGIN \(String(repeating: "A", count: 100_000))-----",
        ] {
            #expect(
                reason { _ = try Certificate(data: Data(text.utf8)) } == .unparseable,
                "\(text.prefix(80))"
            )
        }
        let many = String(repeating: "-----BEGIN ", count: 90_000)
        #expect(reason { _ = try Certificate(data: Data(many.utf8)) } == .unparseable)
    }

    @Test func `trailing bytes after DER are reported as damage`() throws {
        _ = try authority.server("example.test")
        let der = try Certificate(contentsOf: authority.url("example.test.pem")).data
        #expect(reason { _ = try Certificate(data: der + [0x0a]) } == .unparseable)
        for length in stride(from: 1, to: der.count, by: 7) {
            #expect(reason { _ = try Certificate(data: der.prefix(length)) } == .unparseable, "\(length)")
        }
    }

    @Test func `randomly changed bytes are accepted or refused without a crash`() throws {
        _ = try authority.client("client.test")
        _ = try authority.revocationList("list.pem")
        try authority.openssl(
            """
            cat client.test.key client.test.chain list.pem > all.pem
            openssl x509 -in client.test.pem -pubkey -noout >> all.pem
            openssl x509 -in client.test.pem -outform der -out client.der
            openssl crl -in list.pem -outform der -out list.der
            openssl pkey -in client.test.key -pubout -outform der -out public.der
            openssl pkcs12 -export -in client.test.chain -inkey client.test.key -passout pass: -iter 1 -out client.p12
            """
        )
        let inputs = try ["all.pem", "client.der", "list.der", "public.der", "client.p12"].map(authority.data)
        var taken = 0
        for seed in seeds(2000) {
            var lots = SeededGenerator(seed: seed)
            let input = inputs[Int.random(in: 0..<inputs.count, using: &lots)]
            let data = changed(input, using: &lots)
            taken += read(data)
        }
        // Most changes affect parts that are not checked, for example a signature. So some inputs must be accepted.
        #expect(ProcessInfo.processInfo.environment["NETWATCH_SEED"] != nil || taken > 100)
    }

    private func changed(_ data: Data, using lots: inout SeededGenerator) -> Data {
        var data = data
        switch Int.random(in: 0..<4, using: &lots) {
        case 0: data = data.prefix(Int.random(in: 0...data.count, using: &lots))
        case 1: data = Data((0..<300).map { _ in UInt8.random(in: 0...255, using: &lots) })
        default:
            for _ in 0..<Int.random(in: 1...4, using: &lots) {
                data[Int.random(in: 0..<data.count, using: &lots)] = UInt8.random(in: 0...255, using: &lots)
            }
        }
        return data
    }

    /// Returns 1 if any reader accepts the data, otherwise 0. Also creates the descriptions of accepted data, which
    /// must not crash.
    private func read(_ data: Data) -> Int {
        let certificate = try? Certificate(data: data)
        let key = try? PublicKey(data: data)
        let list = try? CertificateRevocationList(data: data)
        let identity = try? ClientIdentity(data: data)
        let words = "\(certificate?.description ?? "")\(key?.description ?? "")\(identity?.description ?? "")"
        return words.isEmpty && list == nil ? 0 : 1
    }
}
