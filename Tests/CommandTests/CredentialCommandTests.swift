internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Credentials of the service, from their files to the requests that a server receives.
@Suite(.timeLimit(.minutes(5))) struct CredentialCommandTests {
    private let directory = try! ScratchDirectory()

    private func service(environment: [String: String] = [:]) async throws -> RunningService {
        mkdir(directory.file("credentials"), 0o700)
        return try await RunningService(
            in: directory,
            environment: environment,
            options: ["--credentials", directory.file("credentials")]
        )
    }

    private func write(_ name: String, origin: String, value: String, mode: mode_t = 0o600) throws {
        let text = "type: bearer\norigins: \(origin)\nvalue: \(value)\n"
        let path = try directory.write(Array(text.utf8), to: "credentials/new-\(name)")
        #expect(chmod(path, mode) == 0)
        // The file is replaced at once, so that the service never reads a part of it.
        #expect(rename(path, directory.file("credentials/\(name)")) == 0)
    }

    @Test func `a secret reaches the server and no file, log, listing or export`() async throws {
        // The server repeats what it received.
        let server = try ScriptedServer { request in
            let field = request.values(of: "Authorization").joined()
            let body = "\(field)|\(Data(field.utf8).base64EncodedString())|thanks"
            let headers = [ScriptedServer.Header("X-Request-Id", field)]
            return .respond(status: 200, headers: headers, body: Array(body.utf8))
        }
        let service = try await service()
        try write("api", origin: server.url, value: "hush-hush")
        let watching = try await service.events("--format", "json", "-n", "3")
        let sent = try await service.run(
            "send",
            server.url + "/a?token=hush-hush",
            "-d",
            "{}",
            "--credential",
            "api",
            "-H",
            "Authorization: Bearer hush-hush"
        )
        #expect(sent.ending == .exited(0) && sent.errors == ["delivered: HTTP 200"], "\(sent.errors)")
        let request = try #require(server.requests.first)
        #expect(request.values(of: "Authorization") == ["Bearer hush-hush"] && request.target == "/a")
        let id = try #require(sent.output.first)
        let shown = try await service.run("queue", "show", id)
        #expect(shown.output.contains("auth      credential api"), "\(shown.output)")
        let json = try await service.run("queue", "show", id, "--format", "json")
        let details = try Command.json(json.output[0])
        #expect((details["request"] as? [String: Any])?["credential"] as? String == "api")
        let response = details["response"] as? [String: Any]
        let body = Data(base64Encoded: response?["body_base64"] as? String ?? "") ?? Data()
        // The last character before the padding contains 2 bits of the secret.
        #expect(String(decoding: body, as: UTF8.self) == "REDACTED|REDACTEDA==|thanks")
        #expect((response?["headers"] as? [[String]])?.contains(["X-Request-Id", "REDACTED"]) == true)
        #expect(try await watching.end() == .exited(0))
        let events = watching.output.values
        // A waiting request is part of the export.
        try await service.pause()
        try await service.keep(server.url + "/b", "--credential", "api")
        let export = try await service.run("queue", "export")
        #expect(export.output.contains { $0.contains(#""credential":"api""#) }, "\(export.errors)")
        try await service.stop()
        #expect(events.contains { $0.contains(id) })
        let texts = shown.output + json.output + export.output + service.process.errors.values + events
        #expect(!texts.contains { $0.contains("hush") })
        for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path) {
            guard !path.hasPrefix("credentials/"),
                let data = FileManager.default.contents(atPath: directory.file(path))
            else { continue }
            #expect(data.firstRange(of: Data("hush".utf8)) == nil, "\(path)")
            #expect(data.firstRange(of: Data("h1c2gtaHVz".utf8)) == nil, "\(path)")
        }
    }

    @Test func `a request is held while its file is missing, open to others or of another origin`()
        async throws
    {
        let server = try ScriptedServer { _ in .respond("thanks") }
        // The file exists before the service starts, so that the service notices when it is removed.
        mkdir(directory.file("credentials"), 0o700)
        try write("api", origin: "http://other.example", value: "t")
        let service = try await service()
        let id = try await service.keep(server.url + "/a", "--credential", "api")
        func reason(containing words: String) async throws {
            try await service.request(id) { entry in
                (entry["reason"] as? String)?.contains(words) == true && entry["state"] as? String == "held"
            }
        }
        try await reason(containing: "accepted: http://other.example:80")
        #expect(unlink(directory.file("credentials/api")) == 0)
        try await reason(containing: "held (auth): there is no credential `api`: ")
        try write("api", origin: server.url, value: "t", mode: 0o644)
        try await reason(containing: "has the mode 0644; use `chmod 600`")
        #expect(server.requests.isEmpty)
        try write("api", origin: server.url, value: "t")
        #expect(try await service.end(of: id)["state"] as? String == "delivered")
        #expect(server.requests.map { $0.values(of: "Authorization") } == [["Bearer t"]])
    }

    @Test func `a request is refused with a hint while its file is removed and created again`() async throws {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let service = try await service()
        try write("api", origin: server.url, value: "old")
        let send = ["send", server.url, "-d", "{}", "--credential", "api"]
        #expect(try await service.run(send).errors == ["delivered: HTTP 200"])
        #expect(unlink(directory.file("credentials/api")) == 0)
        let refused = try await service.run(send)
        #expect(refused.ending == .exited(64) && refused.output.isEmpty, "\(refused)")
        let words = "credentials/api does not exist any more; to replace a file without a gap"
        #expect(refused.errors.first?.contains(words) == true, "\(refused.errors)")
        try write("api", origin: server.url, value: "new")
        #expect(try await service.run(send).errors == ["delivered: HTTP 200"])
        #expect(server.requests.map { $0.values(of: "Authorization") } == [["Bearer old"], ["Bearer new"]])
    }

    @Test func `a request that the server rejects is held, and another credential releases it`() async throws
    {
        let server = try ScriptedServer { request in
            .respond(
                status: request.values(of: "Authorization") == ["Bearer good"] ? 200 : 401,
                headers: [],
                body: []
            )
        }
        let service = try await service()
        try write("old", origin: server.url, value: "bad")
        try write("new", origin: server.url, value: "good")
        let id = try await service.keep(server.url + "/a", "--credential", "old")
        let held = try await service.request(id) { $0["state"] as? String == "held" }
        #expect(held["reason"] as? String == "held (auth): HTTP 401")
        let refused = try await service.run("queue", "credential", id, "a/b")
        #expect(
            refused.ending != .exited(0) && refused.errors.first?.contains("`a/b`") == true,
            "\(refused.errors)"
        )
        let unknown = try await service.run("queue", "credential", id, "nwe")
        #expect(unknown.ending == .exited(64), "\(unknown.errors)")
        let path = directory.file("credentials/nwe")
        let words = "error: there is no credential `nwe`: \(path) does not exist; known: new, old"
        #expect(unknown.errors == [words])
        for option in ["--credential", "--on-done-credential"] {
            let arguments = ["send", server.url, "--on-done", server.url, option, "nwe"]
            let refused = try await service.run(arguments)
            #expect(refused.ending == .exited(64) && refused.errors == [words], "\(refused.errors)")
        }
        let request = try await service.details(of: id)["request"] as? [String: Any]
        #expect(request?["credential"] as? String == "old")
        let changed = try await service.run("queue", "credential", id, "new")
        #expect(changed.ending == .exited(0), "\(changed.errors)")
        #expect(try await service.end(of: id)["state"] as? String == "delivered")
        let late = try await service.run("queue", "credential", id, "old")
        #expect(late.ending == .exited(1), "\(late.errors)")
    }

    @Test func `the name of a credential is only checked by the service`() async throws {
        let service = try await RunningService(in: directory)
        try await service.pause()
        try await service.keep("http://127.0.0.1:1/", "--id", "order-1")
        let refused = try await service.run("queue", "credential", "order-1", "later")
        #expect(refused.ending == .exited(64))
        let words = "the service has no credentials directory; see `netwatch serve --credentials`"
        #expect(refused.errors.first?.contains(words) == true, "\(refused.errors)")
        try await service.stop()
        let changed = try await Command.run(
            "queue",
            "credential",
            "order-1",
            "later",
            "--state-dir",
            service.stateDirectory
        )
        #expect(changed.ending == .exited(0), "\(changed.errors)")
        #expect(changed.errors.first?.contains("not checked, because the service is not running") == true)
    }

    @Test func `no client of the control socket can send a credential to an origin that it does not list`()
        async throws
    {
        let other = try ScriptedServer { _ in .respond("stolen") }
        let elsewhere = ScriptedServer.Header("Location", other.url + "/")
        let server = try ScriptedServer { request in
            request.target == "/away" ? .respond(status: 307, headers: [elsewhere]) : .respond("thanks")
        }
        let proxies = ["http_proxy": other.url, "https_proxy": other.url, "ALL_PROXY": other.url]
        let service = try await service(environment: proxies)
        try write("api", origin: server.url, value: "hush-hush")
        let (here, there) = (server.url.dropFirst(7), other.url.dropFirst(7))
        let otherForms = [
            "http://\(there)/", "http://\(here)@\(there)/", "http://\(there)/@\(here)/",
            "http://\(there)#@\(here)/",
            "http://localhost:\(there.split(separator: ":")[1])/",
            "http://localhost:\(here.split(separator: ":")[1])/",
        ]
        for url in otherForms {
            let sent = try await service.run("send", url, "-d", "{}", "--credential", "api")
            // The service notices the new file, and may examine the held request again before the command asks for it.
            let words = "the credential `api` must not be sent to `http://"
            #expect(sent.errors.first?.contains(words) == true, "\(url): \(sent.errors)")
            #expect(sent.errors.first?.contains("accepted: \(server.url)") == true, "\(sent.errors)")
        }
        let sent = try await service.run("send", server.url + "/here", "-d", "{}", "--credential", "api")
        #expect(sent.errors == ["delivered: HTTP 200"])
        let redirected = try await service.run(
            "send",
            server.url + "/away",
            "-d",
            "{}",
            "--credential",
            "api"
        )
        #expect(redirected.errors.first?.hasPrefix("dead: HTTP 307") == true, "\(redirected.errors)")
        let host = try await service.run("send", server.url, "--credential", "api", "-H", "Host: \(there)")
        #expect(host.ending == .exited(64), "\(host.errors)")
        for member in ["proxy", "resolve", "connect_to", "unix_socket", "interface", "redirect"] {
            let body = #"{"url":"\#(server.url)/m","credential":"api","\#(member)":"\#(there)"}"#
            let answer = try await service.curl("/v1/requests -d '\(body)'")
            #expect(answer.contains("malformed_body") && answer.contains(member), "\(answer)")
        }
        // Requests that get the credential later, and requests of an export.
        try write("unused", origin: "http://unused.example", value: "hush-hush")
        let kept = try await service.keep("http://\(there)/kept", "--credential", "unused")
        try await service.request(kept) { $0["state"] as? String == "held" }
        _ = try await service.run("queue", "credential", kept, "api")
        try await service.pause()
        let exported = try await service.keep("http://\(there)/exported", "--credential", "api")
        let export = try await service.run("queue", "export").output.map { $0 + "\n" }.joined()
        let file = try directory.write(Array(export.utf8), to: "export")
        let second = try await RunningService(
            in: try ScratchDirectory(),
            options: ["--credentials", directory.file("credentials")]
        )
        #expect(try await second.run("queue", "import", file).errors.first?.hasPrefix("imported") == true)
        _ = try await service.run("queue", "resume")
        for (id, service) in [(kept, service), (exported, second)] {
            try await service.request(id) { entry in
                (entry["reason"] as? String)?.contains("must not be sent to `http://\(there)`") == true
            }
        }
        #expect(other.requests.isEmpty)
        #expect(Set(server.requests.map(\.target)) == ["/away", "/here"])
        #expect(server.requests.allSatisfy { $0.values(of: "Authorization") == ["Bearer hush-hush"] })
    }

    @Test func `neither a webhook nor a repeated id sends a credential to another origin`() async throws {
        let other = try ScriptedServer { _ in .respond("stolen") }
        let server = try ScriptedServer { _ in .respond("thanks") }
        let service = try await service()
        try write("api", origin: server.url, value: "hush-hush")
        let arguments = ["send", server.url + "/a", "-d", "{}", "--id", "order-1", "--credential", "api"]
        let webhook = ["--on-done", other.url + "/hook", "--on-done-credential", "api"]
        #expect(try await service.run(arguments + webhook).errors == ["delivered: HTTP 200"])
        let words = "the credential `api` must not be sent to `\(other.url)`"
        try await service.until {
            try await service.queue().contains { ($0["reason"] as? String)?.contains(words) == true }
        }
        let repeated = try await service.run(
            ["send", other.url + "/a", "-d", "{}", "--id", "order-1", "--credential", "api"]
        )
        #expect(repeated.ending == .exited(64), "\(repeated)")
        #expect(repeated.errors.first?.contains("order-1") == true, "\(repeated.errors)")
        #expect(other.requests.isEmpty && server.requests.map(\.target) == ["/a"])
    }

    @Test func `a directory of credentials that cannot be used is refused, and a faulty file is a warning`()
        async throws
    {
        let missing = try await Command.run(
            "serve",
            "--state-dir",
            directory.file("other"),
            "--socket",
            directory.file("other-socket"),
            "--credentials",
            directory.file("missing")
        )
        #expect(missing.ending == .exited(78))
        let words = "the directory of credentials `\(directory.file("missing"))` cannot be used: No such file"
        #expect(missing.errors.contains { $0.contains(words) }, "\(missing.errors)")
        mkdir(directory.file("credentials"), 0o700)
        try directory.write(Array("hush: hush".utf8), to: "credentials/bad")
        #expect(chmod(directory.file("credentials/bad"), 0o600) == 0)
        let service = try await service()
        let warnings = service.process.errors.values.filter {
            $0.contains("the credential `bad` cannot be used")
        }
        #expect(warnings.count == 1 && warnings[0].contains("line 1") && !warnings[0].contains("hush"))
    }

    @Test func `a secret without a credential is refused with the name of the option`() async throws {
        let service = try await service()
        for arguments in [
            ["http://a.example/?api_key=hush"], ["http://a.example/", "-H", "X-Api-Key: hush"],
            ["http://a.example/?auth_token=hush"], ["http://a.example/", "-H", "PRIVATE-TOKEN: hush"],
        ] {
            let sent = try await service.run(["send"] + arguments)
            #expect(
                sent.ending == .exited(64) && sent.errors.contains { $0.contains("credential") },
                "\(sent.errors)"
            )
            #expect(!sent.errors.contains { $0.contains("hush") })
        }
    }
}
