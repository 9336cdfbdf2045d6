internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A service with an encryption key, from the accepted request to the delivered one, through kills and restarts.
@Suite(.timeLimit(.minutes(5))) struct EncryptionCommandTests {
    /// Where the service finds its key.
    enum KeySource: CaseIterable {
        /// `--encryption-key`.
        case option
        /// `netwatch-queue-key` in `$CREDENTIALS_DIRECTORY`.
        case credential
        /// The service has no key, and stores its requests as plaintext.
        case none
    }

    private static let first = String(repeating: "1a", count: 32)
    private static let second = String(repeating: "2b", count: 32)

    private let directory = try! ScratchDirectory()

    private var state: String { directory.file("state") }
    private var keyFile: String { directory.file("key") }

    private func write(_ text: String, to name: String) throws {
        let path = try directory.write(Array(text.utf8), to: name)
        try #require(chmod(path, 0o600) == 0)
    }

    /// Starts a service with these keys in its key file; without a key file if there are none.
    private func service(_ keys: String...) async throws -> RunningService {
        guard !keys.isEmpty else { return try await RunningService(in: directory) }
        try write(keys.joined(separator: "\n"), to: "key")
        return try await RunningService(in: directory, options: ["--encryption-key", keyFile])
    }

    /// Starts a service with a credential `api` and a key.
    private func service(_ source: KeySource, _ server: ScriptedServer) async throws -> RunningService {
        let credentials = directory.file("credentials")
        mkdir(credentials, 0o700)
        try write("type: bearer\norigins: \(server.url)\nvalue: hush-token\n", to: "credentials/api")
        var options: [String] = []
        switch source {
        case .option:
            try write(Self.first, to: "key")
            options = ["--encryption-key", keyFile]
        case .credential: try write(Self.first, to: "credentials/netwatch-queue-key")
        case .none: break
        }
        let environment = ["CREDENTIALS_DIRECTORY": credentials]
        return try await RunningService(in: directory, environment: environment, options: options)
    }

    /// Runs a command in the queue's directory, while no service runs.
    private func runOffline(_ arguments: String...) async throws -> Subprocess.Outcome {
        try await Command.start(arguments + ["--state-dir", state]).outcome()
    }

    /// Returns the secrets of the tests that occur in any file of the state directory.
    private func secretsOnDisk() throws -> Set<String> {
        try FileManager.default.subpathsOfDirectory(atPath: state).reduce(into: Set()) { found, name in
            guard let bytes = FileManager.default.contents(atPath: "\(state)/\(name)") else { return }
            found.formUnion(Self.secrets.filter { bytes.firstRange(of: Data($0.utf8)) != nil })
        }
    }

    private static let secrets = [
        "hush-body", "hush-large", "hush-field", "hush-id", "hush-token", "hush-reply",
    ]

    private static let largeBody = String(repeating: "hush-large ", count: 10_000)

    /// Enqueues a request with a small body and one whose body is a file, both with secrets.
    private func keepSecrets(_ service: RunningService, _ url: String) async throws {
        try write(Self.largeBody, to: "large")
        let field = ["-H", "X-Note: hush-field", "--idempotency-key", "hush-id"]
        for (name, body) in [
            ("small", ["-d", "hush-body"]), ("large", ["-X", "POST", "-T", directory.file("large")]),
        ] {
            let options = ["--id", name, "--credential", "api", "--queue", "always"]
            let sent = try await service.run(["send", "\(url)/\(name)"] + body + field + options)
            #expect(sent.ending == .exited(0), "\(sent.errors)")
        }
    }

    @Test(arguments: [KeySource.option, .credential])
    func `an encrypted request survives a kill, and only its server and the owner of the key see its secrets`(
        source: KeySource
    ) async throws {
        let server = try ScriptedServer { _ in .respond("hush-reply") }
        let service = try await service(source, server)
        try await service.pause()
        try await keepSecrets(service, server.url)
        #expect(try secretsOnDisk() == [])
        let shown = try await service.details(of: "small")
        #expect("\(shown)".contains("hush-field"), "the service has the key")
        try await service.kill()
        #expect(try secretsOnDisk() == [])
        try await expectHiddenWithoutKey(export: 1)

        let again = try await self.service(source, server)
        #expect(try await again.run("queue", "resume").ending == .exited(0))
        #expect(try await again.finalStates() == ["delivered", "delivered"])
        try expectDelivery(server.requests)
        let reply = try await again.run("queue", "show", "large", "--body")
        #expect(reply.output == ["hush-reply"], "\(reply.errors)")
        try await again.stop()
        #expect(try secretsOnDisk() == [])
        try await expectHiddenWithoutKey(export: 0)
        let log = service.process.errors.values + again.process.errors.values
        #expect(!log.contains { $0.contains("hush") }, "\(log)")
    }

    /// Checks the commands that read the directory without the key.
    ///
    /// - Parameter status: The exit status of the export, which is 1 if it must leave out requests.
    private func expectHiddenWithoutKey(export status: CInt) async throws {
        let list = try await runOffline("queue", "list", "--format", "json")
        #expect(list.ending == .exited(0) && list.output.count == 2, "\(list.errors)")
        let shown = try await runOffline("queue", "show", "small", "--format", "json")
        #expect(shown.ending == .exited(0), "\(shown.errors)")
        let export = try await runOffline("queue", "export")
        #expect(export.ending == .exited(status), "\(export.errors)")
        for result in [list, shown, export] {
            #expect(!(result.output + result.errors).contains { $0.contains("hush") }, "\(result)")
        }
    }

    private func expectDelivery(_ requests: [ScriptedServer.Request]) throws {
        #expect(requests.map(\.target).sorted() == ["/large", "/small"])
        for request in requests {
            let body = request.target == "/small" ? "hush-body" : Self.largeBody
            #expect(request.body == Array(body.utf8))
            #expect(request.values(of: "X-Note") == ["hush-field"])
            #expect(request.values(of: "Idempotency-Key") == ["hush-id"])
            #expect(request.values(of: "Authorization") == ["Bearer hush-token"])
        }
    }

    @Test func `without a key, the same search finds everything except the credential`() async throws {
        let server = try ScriptedServer { _ in .respond("hush-reply") }
        let service = try await service(.none, server)
        try await service.process.errors.wait(timeout: .seconds(240)) {
            $0.contains { $0.contains("stored requests are not encrypted") }
        }
        try await keepSecrets(service, server.url)
        #expect(try await service.finalStates() == ["delivered", "delivered"])
        // The bodies of delivered requests are removed.
        #expect(try secretsOnDisk().isSuperset(of: ["hush-field", "hush-id", "hush-reply"]))
        try await service.pause()
        let more = try await service.run("send", server.url, "-d", "hush-body", "--queue", "always")
        let large = try await service.run(
            "send",
            server.url,
            "-T",
            directory.file("large"),
            "--queue",
            "always"
        )
        #expect(more.ending == .exited(0) && large.ending == .exited(0))
        #expect(try secretsOnDisk() == Set(Self.secrets).subtracting(["hush-token"]))
    }

    @Test func `the key of the queue is never sent as a credential`() async throws {
        let server = try ScriptedServer { _ in .respond("") }
        let service = try await service(.credential, server)
        let sent = try await service.run("send", server.url, "--credential", "netwatch-queue-key")
        #expect(sent.ending == .exited(64))
        let words = "is the encryption key of the queue, and is never sent"
        #expect(sent.errors.first?.contains(words) == true, "\(sent.errors)")
        #expect(server.requests.isEmpty)
    }

    @Test func `after a rotation the requests are delivered with the new key alone`() async throws {
        let server = try ScriptedServer { _ in .respond("") }
        let old = try await service(Self.first)
        try await old.pause()
        try write(Self.largeBody, to: "large")
        try await old.keep("\(server.url)/small", "-d", "hush-body")
        try await old.keep("\(server.url)/large", "-X", "POST", "-T", directory.file("large"))
        let oldKey = try #require(try await keys(of: old).first)
        try await old.kill()

        let both = try await service(Self.second, Self.first)
        // No event reports that rows were converted to another key.
        try await poll {
            let keys = try await keys(of: both)
            return keys.count == 1 && keys != [oldKey]
        }
        try await both.kill()

        let new = try await service(Self.second)
        #expect(!new.process.errors.values.contains { $0.contains("is missing") })
        let key = try #require(try await keys(of: new).first)
        try await new.process.errors.wait(timeout: .seconds(240)) {
            $0.contains { $0.contains("stored requests are encrypted with the key `\(key)`") }
        }
        #expect(try await new.run("queue", "resume").ending == .exited(0))
        #expect(try await new.finalStates() == ["delivered", "delivered"])
        let bodies = Set(server.requests.map { String(decoding: $0.body, as: UTF8.self) })
        #expect(server.requests.count == 2 && bodies == ["hush-body", Self.largeBody])
    }

    /// Returns the ids of the keys that encrypt stored requests.
    private func keys(of service: RunningService) async throws -> [String] {
        let statistics = try await Command.json(service.curl("/v1/queue/stats"))
        let uses = try #require(statistics["encryption"] as? [[String: Any]])
        return uses.map { $0["key"] as? String ?? "none" }
    }

    @Test func `requests whose key is missing are held and others continue, until the key is back`()
        async throws
    {
        let server = try ScriptedServer { _ in .respond("") }
        let service = try await service(Self.first)
        try await service.pause()
        try write(Self.largeBody, to: "large")
        try await service.keep("\(server.url)/small", "--id", "small", "-d", "hush-body")
        try await service.keep("\(server.url)/large", "--id", "large", "-T", directory.file("large"))
        let key = try #require(try await keys(of: service).first)
        try await service.kill()

        let wrong = try await self.service(Self.second)
        let note = "the encryption key `\(key)` of 2 stored requests is not in the key file"
        #expect(wrong.process.errors.values.contains { $0.contains(note) }, "\(wrong.process.errors.values)")
        #expect(try await wrong.run("queue", "resume").ending == .exited(0))
        let wrongKey = "held (key): the key file contains the wrong key: `"
        try await expectHeld(["small", "large"], wrongKey, key, in: wrong)
        let other = try await wrong.run("send", "\(server.url)/other", "-d", "x", "--queue", "always")
        #expect(other.ending == .exited(2), "\(other.errors)")
        #expect(
            other.errors.first?.contains("with the wrong encryption key, `") == true
                && other.errors.first?.contains("` instead of `\(key)`") == true,
            "\(other.errors)"
        )
        let released = try await wrong.run("queue", "release", "small")
        #expect(released.ending == .exited(1))
        let refusal = "the queue cannot decrypt it, so release is not possible"
        #expect(released.errors.first?.contains(refusal) == true)
        try await wrong.kill()

        let locked = try await RunningService(in: directory)
        try await expectHeld(["small", "large"], "held (key): ", key, in: locked)
        let refused = try await locked.run("send", "\(server.url)/refused", "-d", "x")
        #expect(refused.ending == .exited(2), "\(refused.errors)")
        #expect(refused.errors.first?.contains("without its encryption key") == true, "\(refused.errors)")
        #expect(refused.errors.contains { $0.contains("`netwatch serve --encryption-key FILE`") })
        try await locked.kill()

        let right = try await self.service(Self.second, Self.first)
        #expect(try await Set(right.finalStates()) == ["delivered"])
        #expect(server.requests.map(\.target).sorted() == ["/large", "/small"])
        let bodies = Set(server.requests.map { String(decoding: $0.body, as: UTF8.self) })
        #expect(bodies == ["hush-body", Self.largeBody])
    }

    // MARK: Commands without the key

    /// Leaves a queue with an encrypted request that was delivered, and one that waits and has a body file.
    private func leaveEncryptedQueue() async throws {
        let server = try ScriptedServer { _ in .respond("hush-reply") }
        let service = try await service(Self.first)
        let sent = try await service.run("send", server.url, "--id", "sent", "-H", "X-Note: hush-field")
        #expect(sent.errors == ["delivered: HTTP 200"])
        try await service.pause()
        try write(Self.largeBody, to: "large")
        try await service.keep(server.url, "--id", "waiting", "-T", directory.file("large"))
        try await service.stop()
    }

    @Test func `a verification without the key reports what it could not check`() async throws {
        try await leaveEncryptedQueue()
        let verified = try await runOffline("queue", "verify")
        #expect(verified.ending == .exited(2))
        #expect(verified.output.count == 1 && verified.output[0].hasPrefix("encryption_key: waiting: "))
        #expect(
            verified.errors.contains("no damage found: checked 0 requests and 0 files"),
            "\(verified.errors)"
        )
        #expect(
            verified.errors.contains {
                $0.contains("1 encrypted request could not be checked without the key")
            }
        )
        let json = try await runOffline("queue", "verify", "--format", "json")
        #expect(json.ending == .exited(2))
        let report = try Command.json(json.output[0])
        #expect(report["unchecked"] as? Int == 1)
        #expect(report["sound"] as? Bool == false && report["damaged"] as? Bool == false)
        let finding = try #require((report["findings"] as? [[String: Any]])?.first)
        #expect(finding["kind"] as? String == "encryption_key" && finding["subject"] as? String == "waiting")
        let readable = try await runOffline("queue", "verify", "--encryption-key", keyFile)
        #expect(readable.ending == .exited(0))
        #expect(readable.errors == ["sound: checked 1 request and 1 file"])
    }

    @Test func `without the key, a request is shown with the reason why parts of it are hidden`() async throws
    {
        try await leaveEncryptedQueue()
        let shown = try await runOffline("queue", "show", "sent")
        let words = "hidden    header fields, idempotency key, body or response: the encryption key `"
        #expect(
            shown.ending == .exited(0) && shown.output.contains { $0.hasPrefix(words) },
            "\(shown.output)"
        )
        let json = try await runOffline("queue", "show", "sent", "--format", "json")
        let details = try Command.json(json.output[0])
        #expect(
            (details["unreadable"] as? String)?.contains("is missing") == true && details["response"] == nil
        )
        #expect(details["headers"] == nil, "an empty list would mean that the request has no header fields")
        let body = try await runOffline("queue", "show", "sent", "--body")
        #expect(body.ending == .exited(2) && body.output == [])
        #expect(body.errors.first?.contains("the response cannot be read: the encryption key `") == true)
        let waiting = try await runOffline("queue", "show", "waiting", "--body")
        #expect(waiting.ending == .exited(1) && waiting.errors.first?.contains("has no response") == true)

        let readable = try await runOffline("queue", "show", "sent", "--encryption-key", keyFile)
        #expect(readable.output.contains("header    X-Note: hush-field"), "\(readable.output)")
        #expect(!readable.output.contains { $0.hasPrefix("hidden") })
        let reply = try await runOffline("queue", "show", "sent", "--body", "--encryption-key", keyFile)
        #expect(reply.output == ["hush-reply"])
    }

    @Test func `a key file that cannot be used is an error, and has no effect on a running service`()
        async throws
    {
        let missing = directory.file("missing")
        let refused = try await Command.run(
            "serve",
            "--state-dir",
            state,
            "--socket",
            directory.file("socket"),
            "--encryption-key",
            missing
        )
        #expect(refused.ending == .exited(78))
        let words = "the encryption key file `\(missing)` cannot be read: No such file"
        #expect(refused.errors.contains { $0.contains(words) }, "\(refused.errors)")
        let help = try await Command.run("serve", "--help").output.joined(separator: " ")
        #expect(
            help.split(separator: " ").joined(separator: " ").contains(
                "the file of encryption keys cannot be used"
            )
        )

        let service = try await service(Self.first)
        let listed = try await service.run("queue", "list", "--encryption-key", missing)
        #expect(listed.ending == .exited(0))
        let note = "`--encryption-key` has no effect: the service at `\(service.socket)` uses its own keys"
        #expect(listed.errors.first == note, "\(listed.errors)")
        try await service.stop()
        let offline = try await runOffline("queue", "list", "--encryption-key", missing)
        #expect(offline.ending == .exited(78) && offline.errors.contains { $0.contains(words) })
    }

    /// Expects that the requests are held for their key, with a reason that begins with these words and names the key.
    private func expectHeld(
        _ ids: [String],
        _ words: String,
        _ key: String,
        in service: RunningService
    ) async throws {
        for id in ids {
            let held = try await service.request(id) { $0["state"] as? String == "held" }
            let reason = held["reason"] as? String ?? ""
            #expect(reason.hasPrefix(words) && reason.contains("`\(key)`"), "\(reason)")
            #expect(reason.hasSuffix("; add the key `\(key)` to the key file and restart"), "\(reason)")
        }
    }
}
