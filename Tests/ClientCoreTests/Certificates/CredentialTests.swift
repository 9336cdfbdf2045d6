internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

extension TestAuthority {
    func data(_ name: String) throws -> Data { try Data(contentsOf: url(name)) }
    func url(_ name: String) -> URL { URL(fileURLWithPath: file(name)) }
}

/// Reading certificates, keys, identities and revocation lists from files that openssl(1) wrote.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct CredentialTests {
    private let authority: TestAuthority

    init() throws {
        authority = try TestAuthority()
    }

    @Test func `a certificate is equal in PEM and in DER, and has a subject`() throws {
        let issued = try authority.server("example.test")
        try authority.openssl("openssl x509 -in example.test.pem -outform der -out example.der")
        let pem = try Certificate(contentsOf: authority.url("example.test.pem"))
        let der = try Certificate(contentsOf: authority.url("example.der"))
        #expect(pem == der)
        #expect(pem.data == (try authority.data("example.der")))
        #expect(pem.subject == "CN=example.test")
        #expect(pem.issuer == "CN=netwatch intermediate")
        let (from, until) = (try #require(pem.notBefore), try #require(pem.notAfter))
        #expect(until.timeIntervalSince(from) == 30 * 86_400)
        #expect(abs(from.timeIntervalSinceNow) < 3600)
        #expect(pem.description.hasPrefix("CN=example.test (by CN=netwatch intermediate, until 20"))
        let digest = try authority.openssl(
            "openssl dgst -sha256 -binary example.der | openssl base64 | tr -d '\\n'"
        )
        #expect(pem.fingerprint == "sha256//\(digest)")
        #expect(try Certificate.certificates(contentsOf: URL(fileURLWithPath: issued.chain)).count == 2)
    }

    @Test func `a date of any century is parsed`() throws {
        _ = try authority.server("old.test", validity: ("19600102030405Z", "19991231235959Z"))
        _ = try authority.server("late.test", validity: ("20200101000000Z", "99991231235959Z"))
        let old = try Certificate(contentsOf: authority.url("old.test.pem"))
        let late = try Certificate(contentsOf: authority.url("late.test.pem"))
        #expect(old.notBefore?.formatted(.iso8601) == "1960-01-02T03:04:05Z")
        #expect(old.notAfter?.formatted(.iso8601) == "1999-12-31T23:59:59Z")
        #expect(late.notAfter?.formatted(.iso8601) == "9999-12-31T23:59:59Z")
    }

    @Test func `a public key is equal from a certificate, from PEM and from DER`() throws {
        _ = try authority.server("example.test")
        try authority.openssl(
            """
            openssl x509 -in example.test.pem -pubkey -noout > public.pem
            openssl pkey -pubin -in public.pem -outform der -out public.der
            """
        )
        let certificate = try Certificate(contentsOf: authority.url("example.test.pem"))
        for name in ["public.pem", "public.der", "example.test.pem"] {
            #expect(try PublicKey(contentsOf: authority.url(name)) == certificate.publicKey, "\(name)")
        }
        let digest = try authority.openssl(
            "openssl dgst -sha256 -binary public.der | openssl base64 | tr -d '\\n'"
        )
        #expect(certificate.publicKey.fingerprint == "sha256//\(digest)")
    }

    @Test func `a renewed certificate has the same public key`() throws {
        _ = try authority.server("example.test")
        let old = try Certificate(contentsOf: authority.url("example.test.pem"))
        try authority.openssl(
            """
            SAN=DNS:example.test openssl ca -batch -notext -config openssl.cnf -name intermediate \
                -extensions server -days 60 -in example.test.csr -out renewed.pem
            """
        )
        let renewed = try Certificate(contentsOf: authority.url("renewed.pem"))
        #expect(old != renewed)
        #expect(old.publicKey == renewed.publicKey)
    }

    @Test func `an identity is equal from two files, one file and an archive`() throws {
        let issued = try authority.client("client.test")
        try authority.openssl(
            """
            openssl pkey -in client.test.key -outform der -out client.key.der
            openssl x509 -in client.test.pem -outform der -out client.der
            openssl pkey -in client.test.key -aes256 -passout pass:secret -out encrypted.key
            openssl ec -in client.test.key -aes128 -passout pass:secret -out old.key
            openssl pkcs8 -topk8 -in client.test.key -outform der -v2 aes256 -passout pass:secret -out encrypted.der
            cat client.test.key client.test.chain > both.pem
            openssl pkcs12 -export -in client.test.chain -inkey client.test.key -passout pass:secret -out client.p12
            openssl pkcs12 -export -in client.test.chain -inkey client.test.key -passout pass: -out open.p12
            """
        )
        let chain = URL(fileURLWithPath: issued.chain)
        let plain = try ClientIdentity(
            certificatesAt: chain,
            privateKeyAt: URL(fileURLWithPath: issued.key)
        )
        #expect(plain.certificates.map(\.subject) == ["CN=client.test", "CN=netwatch intermediate"])
        for name in ["encrypted.key", "old.key", "encrypted.der"] {
            let other = try ClientIdentity(
                certificatesAt: chain,
                privateKeyAt: authority.url(name),
                passphrase: "secret"
            )
            #expect(other == plain, "\(name)")
        }
        #expect(try ClientIdentity(contentsOf: authority.url("both.pem")) == plain)
        #expect(try ClientIdentity(contentsOf: authority.url("client.p12"), passphrase: "secret") == plain)
        #expect(try ClientIdentity(contentsOf: authority.url("open.p12")) == plain)
        let short = try ClientIdentity(
            certificatesAt: authority.url("client.der"),
            privateKeyAt: authority.url("client.key.der")
        )
        #expect(short.certificates == Array(plain.certificates.prefix(1)))
    }

    @Test func `no description of an identity contains its key`() throws {
        _ = try authority.client("client.test")
        let identity = try ClientIdentity(
            certificatesAt: authority.url("client.test.pem"),
            privateKeyAt: authority.url("client.test.key")
        )
        var dumped = "\(identity) \(String(reflecting: identity))"
        dump(identity, to: &dumped)
        let key = try authority.data("client.test.key")
        let line = try #require(String(decoding: key, as: UTF8.self).split(separator: "\n").dropFirst().first)
        #expect(!dumped.contains(line))
        #expect(!dumped.contains("\(key.first!), \(key.dropFirst().first!)"))
        // `dump` prints each byte of an array on a separate line, below the name of the property.
        #expect(!dumped.contains("key:"))
        #expect(dumped.contains("CN=client.test"))
    }

    @Test func `a revocation list is equal in PEM and in DER`() throws {
        _ = try authority.revocationList("list.pem")
        try authority.openssl("openssl crl -in list.pem -outform der -out list.der")
        let list = try CertificateRevocationList(contentsOf: authority.url("list.pem"))
        #expect(list == (try CertificateRevocationList(contentsOf: authority.url("list.der"))))
        #expect(list.issuer == "CN=netwatch intermediate")
        let (this, next) = (try #require(list.thisUpdate), try #require(list.nextUpdate))
        #expect(next.timeIntervalSince(this) == 30 * 86_400)
    }
}
