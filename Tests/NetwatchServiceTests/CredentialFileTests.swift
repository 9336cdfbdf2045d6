internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService
@testable internal import OfflineQueue

/// Credential files: their format, and the files that the service refuses.
@Suite struct CredentialFileTests {
    private let directory = try! ScratchDirectory()

    private func write(_ text: String, mode: mode_t = 0o600, to name: String = "token") throws {
        #expect(chmod(try directory.write(Array(text.utf8), to: name), mode) == 0)
    }

    private func reason(_ name: String = "token") async throws -> String {
        let source = CredentialDirectory(path: directory.path)
        let fault = await #expect(throws: WithheldReason.self) { try await source.credential(named: name) }
        #expect(fault?.remedy == .change)
        return try #require(fault).reason.replacing(directory.path, with: "DIR")
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "only root can change the owner of a file"))
    func `files of another user are accepted if the service runs as that user`() async throws {
        try write("type: bearer\norigins: https://a.example\nvalue: t")
        for path in [directory.path, directory.file("token")] { #expect(chown(path, 60_001, 60_001) == 0) }
        #expect(try await CredentialDirectory(path: directory.path, user: 60_001).check() == [])
        await #expect(throws: InvalidCredentialDirectory.self) {
            try await CredentialDirectory(path: directory.path).check()
        }
    }

    private static let attempt = Attempt(
        id: "a",
        method: "GET",
        url: "https://a.example/",
        headers: [],
        body: .none,
        mayBeSentTwice: true
    )

    /// Returns what the credential of a file adds to a request.
    private func added() async throws -> String {
        let credential = try await CredentialDirectory(path: directory.path).credential(named: "token")
        let authorized = try await credential.added(to: Self.attempt, named: "token", nil)
        return ([authorized.url] + authorized.headers.map { "\($0.name): \($0.value)" }).joined(
            separator: "|"
        )
    }

    @Test(arguments: [
        ("type: bearer\norigins: https://a.example\nvalue: t", "https://a.example/|Authorization: Bearer t"),
        (
            "# comment\n\n  type:basic\r\nuser: u\r\nvalue: p: q \norigins: https://a.example http://b.example:8080\n",
            "https://a.example/|Authorization: Basic dTpwOiBx"
        ),
        ("type: header\nname: X-Key\nvalue: #k\norigins: https://*.example", "https://a.example/|X-Key: #k"),
        ("type: query\nname: key\nvalue: a b\norigins: https://a.example", "https://a.example/?key=a%20b"),
        // A byte order mark.
        (
            "\u{feff}type: bearer\norigins: https://a.example\nvalue: t",
            "https://a.example/|Authorization: Bearer t"
        ),
    ])
    func `a file of each type is read`(text: String, expected: String) async throws {
        try write(text)
        #expect(try await added() == expected)
    }

    @Test(arguments: [
        ("hush", ", line 1: the line has no `:`; accepted: `key: value`"),
        (
            "hush: hush",
            ", line 1: the key is unknown; accepted: `type`, `origins`, `name`, `user`, `value`, `certificate`, `key`"
        ),
        ("# nothing", ": the file has no `key: value` lines"),
        ("type: bearer\nvalue: hush", ": `origins` is missing"),
        ("type: bearer\norigins: https://a\nvalue:", ", line 3: `value` is empty"),
        (
            "type: hush\nvalue: hush",
            ", line 1: the type is unknown; accepted: `bearer`, `basic`, `header`, `query`, `certificate`"
        ),
        ("type: bearer\n\ntype: basic", ", line 3: `type` was given before"),
        (
            "type: bearer\nuser: hush\norigins: https://a\nvalue: hush",
            ", line 2: `user` is not accepted for the type `bearer`"
        ),
        ("type: header\norigins: https://a\nvalue: hush", ": `name` is missing"),
        (
            "type: bearer\nvalue: https://a\norigins: https://a hush",
            ", line 3: the value 2 of `origins` is not an origin; accepted: `https://HOST` or `http://HOST`, with an "
                + "optional `:PORT`; HOST may begin with `*.`"
        ),
        (
            "type: header\nvalue: X-Token\nname: hush hush\norigins: https://a",
            ", line 3: `name` cannot be the name of the header field; accepted: letters, digits and `-`, such as "
                + "X-Token, and no field that the client sets, such as Host"
        ),
        (
            "type: basic\nuser: hush:hush\norigins: https://a\nvalue: x",
            ", line 2: `user` contains a colon or control characters"
        ),
        ("type: certificate\norigins: https://a\nkey: hush", ": `certificate` is missing"),
        (
            "type: certificate\nkey: a\ncertificate: b\nvalue: hush\norigins: https://a",
            ", line 4: `value` is not accepted for the type `certificate`"
        ),
        (
            "type: certificate\nkey: a\ncertificate: b\norigins: http://a",
            ", line 4: the value 1 of `origins` must begin with `https://`: a client certificate is sent only over TLS"
        ),
        (
            "type: bearer\nvalue: hush hush\norigins: https://a",
            ", line 2: the token is empty or contains spaces or control characters"
        ),
    ])
    func `a faulty file is refused with its line, and the reason contains no secret`(
        text: String,
        end: String
    )
        async throws
    {
        try write(text)
        #expect(try await reason() == "the credential `token` cannot be used: DIR/token\(end)")
        try write("")
        #expect(try await reason().hasSuffix("DIR/token is empty"))
    }

    // MARK: Client certificates

    /// Writes a credential file that names a certificate and a key in the same directory.
    private func writeCertificate(keyMode: mode_t = 0o600) throws -> TestAuthority.Issued {
        let issued = try TestAuthority.shared().client("file.test")
        for (file, name, mode) in [(issued.certificate, "me.pem", 0o644), (issued.key, "me.key", keyMode)] {
            let bytes = try #require(FileManager.default.contents(atPath: file))
            #expect(chmod(try directory.write(Array(bytes), to: name), mode) == 0)
        }
        try write("type: certificate\norigins: https://a.example\ncertificate: me.pem\nkey: me.key")
        return issued
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"))
    func `a certificate and its key are read from the files that the credential names`() async throws {
        let issued = try writeCertificate()
        let source = CredentialDirectory(path: directory.path)
        let authorized = try await source.credential(named: "token")
            .added(to: Self.attempt, named: "token", nil)
        let expected = try ClientIdentity(
            certificatesAt: URL(fileURLWithPath: issued.certificate),
            privateKeyAt: URL(fileURLWithPath: issued.key)
        )
        #expect(authorized.permit?.identity == expected && authorized.headers.isEmpty)
        // The files that a credential names belong to its version.
        let before = await source.versions()["token"]
        #expect(before?.count == 3)
        #expect(utimes(directory.file("me.key"), nil) == 0)
        #expect(await source.versions()["token"] != before)
        #expect(try await source.check().isEmpty, "a file in PEM is no credential")
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"))
    func `a key that other users can read and a certificate that they can change are refused`() async throws {
        _ = try writeCertificate(keyMode: 0o644)
        #expect(try await reason().hasSuffix("DIR/me.key has the mode 0644; use `chmod 600`"))
        #expect(chmod(directory.file("me.pem"), 0o666) == 0)
        #expect(try await reason().hasSuffix("DIR/me.pem has the mode 0666; use `chmod go-w`"))
        #expect(unlink(directory.file("me.pem")) == 0)
        #expect(try await reason().hasSuffix("DIR/me.pem: No such file or directory"))
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"))
    func `a key of another certificate is refused, and the reason contains no key`() async throws {
        _ = try writeCertificate()
        let other = try TestAuthority.shared().client("other.test")
        let key = try #require(FileManager.default.contents(atPath: other.key))
        #expect(chmod(try directory.write(Array(key), to: "me.key"), 0o600) == 0)
        let words = "contains a private key that does not belong to the certificate"
        #expect(try await reason().contains(words))
    }

    // MARK: The directory

    @Test func `the faults of single files are reported, and a directory that cannot be used is refused`()
        async throws
    {
        let source = CredentialDirectory(path: directory.path)
        try write("type: bearer\norigins: https://a.example\nvalue: t", to: "good")
        try write("type: bearer", to: "bad")
        #expect(try await source.check().count == 1)
        #expect(try await source.check().first?.contains("`bad` cannot be used") == true)
        try write("type: bearer", to: ".hidden")
        try write("type: bearer", to: "my token")
        #expect(
            try await source.check().dropFirst() == [
                "the credential name `my token` is not valid (accepted: 1 to 64 ASCII letters, digits, `.`, `_` and "
                    + "`-`, and no leading `.`), so its file is ignored; rename or remove it"
            ]
        )
        #expect(unlink(directory.file("my token")) == 0)
        for (path, words) in [
            (directory.file("missing"), "No such file or directory"),
            (directory.file("good"), "not a directory"),
        ] {
            let error = await #expect(throws: InvalidCredentialDirectory.self) {
                try await CredentialDirectory(path: path).check()
            }
            #expect(error?.description.contains("`\(path)` cannot be used") == true)
            #expect(error?.description.contains(words) == true)
        }
        #expect(chmod(directory.path, 0o777) == 0)
        let error = await #expect(throws: InvalidCredentialDirectory.self) { try await source.check() }
        #expect(error?.description.hasSuffix("it has the mode 0777; use `chmod go-w`") == true)
        #expect(chmod(directory.path, 0o700) == 0)
    }

    @Test(arguments: [mode_t(0o644), 0o604, 0o660, 0o601])
    func `a file that other users can access is refused`(mode: mode_t) async throws {
        try write("type: bearer\norigins: https://a.example\nvalue: t", mode: mode)
        let words = "DIR/token has the mode 0\(String(mode, radix: 8)); use `chmod 600`"
        #expect(try await reason() == "the credential `token` cannot be used: \(words)")
    }

    @Test func `a missing file, a directory, a FIFO and a file that is too long are refused`() async throws {
        #expect(try await reason() == "there is no credential `token`: DIR/token does not exist")
        #expect(mkdir(directory.file("token"), 0o700) == 0)
        #expect(try await reason().hasSuffix("DIR/token is not a regular file"))
        #expect(rmdir(directory.file("token")) == 0 && mkfifo(directory.file("token"), 0o600) == 0)
        #expect(try await reason().hasSuffix("DIR/token is not a regular file"))
        #expect(unlink(directory.file("token")) == 0)
        try write(String(repeating: "a", count: 65_537))
        #expect(try await reason().hasSuffix("DIR/token has 65537 bytes; at most 65536 are accepted"))
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "only root can give a file to another user"))
    func `a file of another user is refused, and one of root may be readable by its group`() async throws {
        try write("type: bearer\norigins: https://a.example\nvalue: t", mode: 0o440)
        #expect(try await added() == "https://a.example/|Authorization: Bearer t")
        #expect(chown(directory.file("token"), 12345, 0) == 0)
        #expect(try await reason().hasSuffix("belongs to the user 12345; accepted: root"))
    }

    @Test func `a service without a directory names the option and the key of the unit`() async throws {
        let fault = await #expect(throws: WithheldReason.self) {
            try await CredentialDirectory(path: nil).credential(named: "token")
        }
        #expect(fault?.reason.contains("`netwatch serve --credentials`") == true)
        #expect(fault?.reason.contains("`LoadCredential=`") == true)
    }

    @Test func `the version of a file changes with its content, its mode and its replacement`() async throws {
        let source = CredentialDirectory(path: directory.path)
        #expect(await source.versions().isEmpty)
        try write("a")
        try write("a", to: ".hidden")
        var seen = [await source.versions()]
        #expect(seen[0].keys.sorted() == ["token"])
        try write("ab")
        seen.append(await source.versions())
        #expect(chmod(directory.file("token"), 0o400) == 0)
        seen.append(await source.versions())
        try write("ab", mode: 0o400, to: "other")
        #expect(rename(directory.file("other"), directory.file("token")) == 0)
        seen.append(await source.versions())
        #expect(Set(seen.map { $0["token"] }).count == 4)
    }
}
