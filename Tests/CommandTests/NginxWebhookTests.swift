internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Webhooks with nginx as their receiver, which parses the requests and checks the credential independently of
/// netwatch.
@Suite(.timeLimit(.minutes(5))) struct NginxWebhookTests {
    private let directory = try! ScratchDirectory()

    /// Starts a server that accepts orders, and logs each webhook with its body.
    ///
    /// - Parameter rules: Directives for the location of the webhooks. Receives the directory of the server.
    private func server(_ rules: (String) -> String) async throws -> Nginx {
        let scratch = try ScratchDirectory()
        try scratch.write(Array("hooks:{PLAIN}hush\n".utf8), to: "users")
        let rules = rules(scratch.path)
        return try await Nginx(in: scratch) { port in
            """
            log_format hook escape=none
                '$status $request_method $remote_user $content_type $http_idempotency_key $request_body';
            server {
                listen 127.0.0.1:\(port);
                location /done {
                    \(rules)
                    access_log \(scratch.path)/hooks.log hook;
                    proxy_pass http://127.0.0.1:\(port)/stored;
                }
                location /stored { return 204; }
                location /orders { return 201; }
            }
            """
        }
    }

    private func service(with password: String, for server: Nginx) async throws -> RunningService {
        #expect(mkdir(directory.file("credentials"), 0o700) == 0)
        let text = "type: basic\norigins: \(server.url)\nuser: hooks\nvalue: \(password)\n"
        let file = try directory.write(Array(text.utf8), to: "credentials/hooks")
        #expect(chmod(file, 0o600) == 0)
        return try await RunningService(
            in: directory,
            options: ["--credentials", directory.file("credentials")]
        )
    }

    /// Sends an order with a webhook, and returns the id of the webhook.
    private func order(_ service: RunningService, _ server: Nginx) async throws -> String {
        let sent = try await service.run(
            ["send", "\(server.url)/orders", "-d", "{}", "--id", "order-1", "--tag", "orders"]
                + ["--on-done", "\(server.url)/done", "--on-done-credential", "hooks"]
        )
        #expect(sent.ending == .exited(0) && sent.errors == ["delivered: HTTP 201"], "\(sent.errors)")
        return try #require(try await service.details(of: "order-1")["webhook"] as? String)
    }

    /// Waits until the server has logged a webhook with this status, and returns the fields of all webhooks.
    ///
    /// nginx logs a request after it has sent the response, so the service may be earlier.
    private func logged(until status: String, by server: Nginx) async throws -> [[String]] {
        var hooks: [[String]] = []
        try await until(changesIn: server.scratch.path) {
            let data = FileManager.default.contents(atPath: server.scratch.file("hooks.log")) ?? Data()
            hooks = String(decoding: data, as: UTF8.self).split(separator: "\n").map {
                $0.split(separator: " ", maxSplits: 5).map(String.init)
            }
            return hooks.last?.first == status
        }
        return hooks
    }

    @Test func `nginx receives one webhook, with its credential, its key and the outcome`() async throws {
        let server = try await server { "auth_basic hooks; auth_basic_user_file \($0)/users;" }
        let service = try await service(with: "hush", for: server)
        let webhook = try await order(service, server)
        #expect(try await service.end(of: webhook)["state"] as? String == "delivered")
        let hooks = try await logged(until: "204", by: server)
        try #require(hooks.count == 1 && hooks[0].count == 6, "\(hooks)")
        #expect(hooks[0].prefix(5) == ["204", "POST", "hooks", "application/json", webhook])
        let outcome = try Command.json(hooks[0][5])
        #expect(outcome["id"] as? String == "order-1" && outcome["tag"] as? String == "orders")
        #expect(outcome["event"] as? String == "delivered" && outcome["status"] as? Int == 201)
    }

    @Test func `a webhook that nginx rejects waits for another credential`() async throws {
        let server = try await server { "auth_basic hooks; auth_basic_user_file \($0)/users;" }
        let service = try await service(with: "wrong", for: server)
        let webhook = try await order(service, server)
        let held = try await service.request(webhook) { $0["state"] as? String == "held" }
        #expect(held["reason"] as? String == "held (auth): HTTP 401")
        let text = "type: basic\norigins: \(server.url)\nuser: hooks\nvalue: hush\n"
        let file = try directory.write(Array(text.utf8), to: "credentials/new-hooks")
        #expect(chmod(file, 0o600) == 0)
        // Replaced at once, so that the service never reads a part of the file.
        #expect(rename(file, directory.file("credentials/hooks")) == 0)
        #expect(try await service.end(of: webhook)["state"] as? String == "delivered")
        let hooks = try await logged(until: "204", by: server)
        #expect(hooks.count >= 2 && hooks.dropLast().allSatisfy { $0.first == "401" }, "\(hooks)")
    }
}
