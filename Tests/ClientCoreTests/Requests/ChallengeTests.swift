internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Challenges of servers, and the credentials with which requests answer them.
@Suite(.timeLimit(.minutes(5))) struct ChallengeTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    private static let basic = ScriptedServer.Header("WWW-Authenticate", "Basic realm=\"netwatch\"")

    @Test func `a challenge without a credential is the response`() async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 401, headers: [Self.basic], body: Array("who are you?".utf8))
        }
        let response = await session.request(server.url).responseString()
        #expect(response.response?.statusCode == 401)
        #expect(response.value == "who are you?")
        #expect(server.requests.count == 1)
    }

    @Test func `a rejected password ends with the 401 response and its body`() async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 401, headers: [Self.basic], body: Array("not you".utf8))
        }
        let request = session.request(server.url).authenticate(user: "user", password: "wrong")
        let response = await request.responseString()
        #expect(response.response?.statusCode == 401)
        #expect(response.value == "not you")
        #expect(server.requests.flatMap { $0.values(of: "Authorization") } == ["Basic dXNlcjp3cm9uZw=="])
    }

    @Test func `the right password answers a Digest challenge`() async throws {
        let server = try ScriptedServer { request in
            let answer = request.values(of: "Authorization").first.map(DigestAnswer.init)
            guard let answer, answer.isRight(method: request.method, user: "user", password: "secret") else {
                let challenge = "Digest realm=\"netwatch\", nonce=\"0123456789\", qop=\"auth\""
                return .respond(status: 401, headers: [.init("WWW-Authenticate", challenge)])
            }
            return .respond("welcome")
        }
        let right = session.request("\(server.url)/page").authenticate(user: "user", password: "secret")
        #expect(try await right.string == "welcome")
        let wrong = session.request("\(server.url)/page").authenticate(user: "user", password: "guess")
        #expect(await wrong.response().response?.statusCode == 401)
    }

    @Test func `Basic is not sent over http after a stronger scheme was offered`() async throws {
        let digest = ScriptedServer.Header(
            "WWW-Authenticate",
            "Digest realm=\"a\", nonce=\"1\", qop=\"auth\""
        )
        let server = try ScriptedServer { request in
            .respond(status: 401, headers: request.target == "/digest" ? [digest, Self.basic] : [Self.basic])
        }
        /// Sends a request, and returns the schemes of the credentials that the server received.
        func sent(_ path: String) async -> [String] {
            let before = server.requests.count
            let request = session.request(server.url + path).authenticate(user: "user", password: "secret")
            #expect(await request.response().response?.statusCode == 401)
            let fields = server.requests.dropFirst(before).flatMap { $0.values(of: "Authorization") }
            return fields.map { String($0.prefix { $0 != " " }) }
        }
        #expect(await sent("/basic") == ["Basic"])
        #expect(await sent("/digest").first == "Digest")
        #expect(await sent("/basic") == [])
        session.delegate.taskDidReceiveChallenge = { _, _, _ in
            (.useCredential, URLCredential(user: "user", password: "secret", persistence: .none))
        }
        #expect(await session.request(server.url + "/basic").response().response?.statusCode == 401)
        #expect(server.requests.last?.values(of: "Authorization") == [])
        // Another session has not received the offer.
        let other = SessionManager(engine: try TransferEngine())
        let request = other.request(server.url + "/basic").authenticate(user: "user", password: "secret")
        _ = await request.response()
        #expect(server.requests.last?.values(of: "Authorization").count == 1)
    }

    @Test(arguments: [false, true])
    func `NTLM over http needs an option`(isPermitted: Bool) async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 401, headers: [.init("WWW-Authenticate", "NTLM")])
        }
        session.requestOptions.allowsNTLMAndNegotiateOverHTTP = isPermitted
        let request = session.request(server.url).authenticate(user: "user", password: "secret")
        #expect(await request.response().response?.statusCode == 401)
        let fields = server.requests.flatMap { $0.values(of: "Authorization") }
        #expect(fields.contains { $0.hasPrefix("NTLM ") } == isPermitted)
    }

    @Test func `the delegate's closure answers a challenge`() async throws {
        let server = try ScriptedServer { request in
            guard request.values(of: "Authorization").isEmpty else { return .respond("welcome") }
            return .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
        }
        session.delegate.taskDidReceiveChallenge = { _, _, challenge in
            #expect(challenge.protectionSpace.realm == "here")
            #expect(challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
            return (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        #expect(try await session.request(server.url).string == "welcome")
        session.delegate.taskDidReceiveChallenge = { _, _, _ in (.performDefaultHandling, nil) }
        #expect(await session.request(server.url).response().response?.statusCode == 401)
        session.delegate.taskDidReceiveChallenge = { _, _, _ in (.cancelAuthenticationChallenge, nil) }
        #expect((await session.request(server.url).response().error as? URLError)?.code == .cancelled)
    }

    @Test func `credentials set after the response are used`() async throws {
        let server = try ScriptedServer { request in
            guard request.values(of: "Authorization").isEmpty else { return .respond("welcome") }
            return .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
        }
        let finished = Recorder<Bool>()
        struct Monitor: EventMonitor {
            let finished: Recorder<Bool>
            func requestDidFinish(_ request: Request, error: (any Error)?) { finished.record(true) }
        }
        session.eventMonitors = [Monitor(finished: finished)]
        let request = session.request(server.url)
        try await finished.wait { !$0.isEmpty }
        #expect(try await request.authenticate(user: "user", password: "password").string == "welcome")
    }

    /// Adds credentials to a request when the head of its 401 arrives, which is too late for the current transfer.
    private struct LateAnswer: EventMonitor {
        func request(_ request: Request, didReceive response: HTTPURLResponse) {
            if response.statusCode == 401 { request.authenticate(user: "user", password: "password") }
        }
    }

    @Test func `credentials set between the response and its end are used`() async throws {
        let server = try ScriptedServer { request in
            guard request.values(of: "Authorization").isEmpty else { return .respond("welcome") }
            return .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
        }
        session.eventMonitors = [LateAnswer()]
        #expect(try await session.request(server.url).validate().string == "welcome")
        #expect(server.requests.count == 2, "Basic credentials are sent without a second challenge")
    }
}

/// The part of a client's answer to a Digest challenge that the test's server checks (RFC 7616, with MD5 and
/// `qop=auth`).
private struct DigestAnswer {
    private let fields: [String: String]

    init(_ field: String) {
        let pairs = field.dropFirst("Digest ".count).split(separator: ",").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1)
            let unquoted = parts.last?.trimmingCharacters(in: CharacterSet(charactersIn: "\" ")) ?? ""
            return (parts.first?.trimmingCharacters(in: .whitespaces) ?? "", unquoted)
        }
        fields = Dictionary(pairs, uniquingKeysWith: { $1 })
    }

    func isRight(method: String, user: String, password: String) -> Bool {
        let one = Self.hash("\(user):netwatch:\(password)")
        let two = Self.hash("\(method):\(self["uri"])")
        let proof = Self.hash("\(one):0123456789:\(self["nc"]):\(self["cnonce"]):\(self["qop"]):\(two)")
        return self["username"] == user && self["response"] == proof
    }

    private subscript(name: String) -> String { fields[name] ?? "" }

    private static func hash(_ text: String) -> String {
        let sum = try? shell("printf %s '\(text)' | md5sum")
        return String(sum?.prefix(32) ?? "")
    }
}
