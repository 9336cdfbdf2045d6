import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Authentication".
@Suite(.timeLimit(.minutes(5))) struct AuthenticationTests {
    /// A separate session: httpbin's Digest sets cookies, which other tests must not send.
    private let sessionManager = SessionManager(configuration: .ephemeral)
    private let user = "user"
    private let password = "password"

    @Test(arguments: ["basic-auth", "hidden-basic-auth", "digest-auth/auth"])
    func `credentials answer a challenge`(scheme: String) async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            sessionManager.request("\(httpbin.url)/\(scheme)/\(user)/\(password)")
                .authenticate(user: user, password: password)
                .responseJSON(completionHandler: $0)
        }
        // At this path, httpbin responds with a 404 instead of a 401, so a client cannot answer the challenge.
        let isHidden = scheme.hasPrefix("hidden")
        #expect(response.response?.statusCode == (isHidden ? 404 : 200))
        #expect(object(response.value)["user"] as? String == (isHidden ? nil : user))
    }

    @Test func `nginx accepts the credentials`() async throws {
        let nginx = try await Nginx.shared()
        let response = await once {
            ClientCore.request("\(nginx.url)/basic/")
                .authenticate(user: user, password: password)
                .response(completionHandler: $0)
        }
        #expect(response.error == nil)
        let status = try #require(response.response?.statusCode)
        #expect(status != 401)
    }

    @Test(arguments: ["basic-auth", "digest-auth/auth"])
    func `a wrong password ends with the server's 401 and no error`(scheme: String) async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            sessionManager.request("\(httpbin.url)/\(scheme)/\(user)/\(password)")
                .authenticate(user: user, password: "wrong")
                .response(completionHandler: $0)
        }
        #expect(response.error == nil)
        #expect(response.response?.statusCode == 401)
    }

    @Test(arguments: ["basic-auth", "digest-auth/auth"])
    func `a challenge without credentials is a normal response`(scheme: String) async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            sessionManager.request("\(httpbin.url)/\(scheme)/\(user)/\(password)")
                .response(completionHandler: $0)
        }
        #expect(response.error == nil)
        #expect(response.response?.statusCode == 401)
    }

    @Test func `a URLCredential answers a challenge`() async throws {
        let httpbin = try await HTTPBin.shared()
        let credential = URLCredential(user: user, password: password, persistence: .forSession)
        let response = await once {
            ClientCore.request("\(httpbin.url)/basic-auth/\(user)/\(password)")
                .authenticate(usingCredential: credential)
                .responseJSON(completionHandler: $0)
        }
        #expect(object(response.value)["authenticated"] as? Bool == true)
    }

    @Test func `an authorization header is sent without a challenge`() async throws {
        let server = try ScriptedServer()
        var headers: HTTPHeaders = [:]
        if let authorizationHeader = Request.authorizationHeader(user: user, password: password) {
            headers[authorizationHeader.key] = authorizationHeader.value
        }
        let sent = headers
        _ = await once { ClientCore.request(server.url, headers: sent).response(completionHandler: $0) }
        #expect(server.requests.map { $0.values(of: "Authorization") } == [["Basic dXNlcjpwYXNzd29yZA=="]])

        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/hidden-basic-auth/user/password", headers: sent)
                .responseJSON(completionHandler: $0)
        }
        #expect(response.response?.statusCode == 200)
    }

    /// The behaviour of a server that requires Basic credentials.
    private static func challenging(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
        guard request.values(of: "Authorization").isEmpty else { return .respond("welcome") }
        return .respond(status: 401, headers: [.init("WWW-Authenticate", #"Basic realm="here""#)])
    }

    @Test func `a challenge takes two requests, the first without credentials`() async throws {
        let server = try ScriptedServer { Self.challenging($0) }
        let response = await once {
            ClientCore.request(server.url)
                .authenticate(user: user, password: password).responseString(completionHandler: $0)
        }
        #expect(response.value == "welcome")
        let sent = server.requests.map { $0.values(of: "Authorization") }
        #expect(sent == [[], ["Basic dXNlcjpwYXNzd29yZA=="]])
    }

    @Test func `a server that does not ask for credentials receives none`() async throws {
        let server = try ScriptedServer()
        _ = await once {
            ClientCore.request(server.url)
                .authenticate(user: user, password: password).response(completionHandler: $0)
        }
        #expect(server.requests.map { $0.values(of: "Authorization") } == [[]])
    }

    @Test func `credentials are not sent to another origin after a redirect`() async throws {
        let other = try ScriptedServer { Self.challenging($0) }
        let server = try ScriptedServer { _ in
            .respond(status: 302, headers: [.init("Location", other.url)])
        }
        let response = await once {
            ClientCore.request(server.url)
                .authenticate(user: user, password: password).response(completionHandler: $0)
        }
        #expect(response.response?.statusCode == 401)
        #expect(other.requests.allSatisfy { $0.values(of: "Authorization").isEmpty })
    }

    @Test func `a body is sent completely after a challenge`() async throws {
        let server = try ScriptedServer { Self.challenging($0) }
        let body = Data(repeating: 0x61, count: 300_000)
        let response = await once {
            ClientCore.upload(body, to: server.url)
                .authenticate(user: user, password: password).responseString(completionHandler: $0)
        }
        #expect(response.value == "welcome")
        #expect(server.requests.last?.body.count == body.count)
    }

    @Test func `a body is sent with Digest`() async throws {
        // httpbin supports Digest only for GET. This server checks the credentials itself, including the method and the
        // path.
        let server = try ScriptedServer { request in
            guard let field = request.values(of: "Authorization").first else {
                let challenge = #"Digest realm="here", nonce="n1", qop="auth", algorithm=MD5"#
                return .respond(status: 401, headers: [.init("WWW-Authenticate", challenge)])
            }
            let isAnswer =
                field.hasPrefix("Digest ") && field.contains(#"nonce="n1""#)
                && field.contains(#"username="user""#) && field.contains(#"uri="/post""#)
            return isAnswer ? .respond("\(request.method) \(request.body.count)") : .respond(status: 401)
        }
        let response = await once {
            ClientCore.request(
                "\(server.url)/post",
                method: .post,
                parameters: ["text": String(repeating: "x", count: 9995)]
            )
            .authenticate(user: user, password: password).responseString(completionHandler: $0)
        }
        #expect(response.value == "POST 10000")
    }
}
