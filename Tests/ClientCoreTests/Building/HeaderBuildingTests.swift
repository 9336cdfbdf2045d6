internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Merging header fields into a request.
@Suite(.timeLimit(.minutes(5))) struct HeaderBuildingTests {
    @Test func `the request's value overrides the session's, whatever the case of the name`() {
        let merged = ["accept": "mine", "X": "1"].merged(over: ["Accept": "theirs", "DNT": "1"])
        #expect(merged == ["accept": "mine", "X": "1", "DNT": "1"])
    }

    @Test func `if two names differ only in case, the one that sorts last always wins`() {
        // One name in 64 spellings, so that a random choice would almost always be detected.
        let spellings = "abcdef".reduce([""]) { names, letter in
            names.flatMap { ["\($0)\(letter)", "\($0)\(letter.uppercased())"] }
        }
        let headers = HTTPHeaders(uniqueKeysWithValues: spellings.map { ($0, "value of \($0)") })
        #expect(headers.count == 64)
        #expect(headers.merged(over: [:]) == ["abcdef": "value of abcdef"])
        #expect(HTTPHeaders().merged(over: headers) == ["abcdef": "value of abcdef"])
    }

    @Test func `a session's fields are added to a request without fields`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["User-Agent": "theirs", "DNT": "1"]
        let settings = SessionSettings(configuration)
        let fields = { (headers: HTTPHeaders) in
            let request = try URLRequest(url: "http://h", method: .get, headers: headers)
            return TransferRequest.headers(of: request, settings: settings, isCrossOrigin: false)
        }
        #expect(try fields(["user-agent": "mine"]) == [.init("DNT", "1"), .init("user-agent", "mine")])
        #expect(try fields([:]) == [.init("DNT", "1"), .init("User-Agent", "theirs")])
    }

    @Test(arguments: [HTTPHeaders(), ["A": "1"]])
    func `a request without User-Agent gets netwatch's after its other fields`(own: HTTPHeaders) throws {
        let request = try URLRequest(url: "http://h", method: .get, headers: own)
        let settings = SessionSettings()
        let fields = TransferRequest.headers(of: request, settings: settings, isCrossOrigin: false)
        #expect(fields.last == .init("User-Agent", TransferRequest.defaultUserAgent))
        #expect(fields.count == own.count + 1)
    }

    @Test func `names keep their case, and a lookup ignores case`() throws {
        var request = try URLRequest(url: "http://h", method: .get, headers: ["ETag": "1", "x-ONE": "2"])
        #expect(request.allHTTPHeaderFields == ["ETag": "1", "x-ONE": "2"])
        #expect(request.value(forHTTPHeaderField: "etag") == "1")
        request.setValue("3", forHTTPHeaderField: "etag")
        #expect(request.allHTTPHeaderFields?.values.sorted() == ["2", "3"])
    }

    @Test func `a header passed to a call is sent`() async throws {
        let server = try ScriptedServer()
        let session = SessionManager(engine: try TransferEngine())
        _ = await session.request(server.url, headers: ["X-One": "1", "x-one": "2"]).response()
        #expect(server.requests.first?.values(of: "X-One") == ["2"])
    }

    // MARK: Authorization

    @Test func `Basic credentials follow RFC 7617`() throws {
        let header = try #require(Request.authorizationHeader(user: "Aladdin", password: "open sesame"))
        #expect(header.key == "Authorization")
        #expect(header.value == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(
            Request.authorizationHeader(user: "test", password: "123£")?.value == "Basic dGVzdDoxMjPCow=="
        )
        #expect(Request.authorizationHeader(user: "", password: "")?.value == "Basic Og==")
        #expect(Request.authorizationHeader(user: "a", password: "b:c")?.value == "Basic YTpiOmM=")
    }

    @Test(arguments: [("a:b", "c"), ("a\n", "b"), ("a", "b\0"), ("a", "\u{7f}")])
    func `credentials that Basic cannot encode return nil`(user: String, password: String) {
        #expect(Request.authorizationHeader(user: user, password: password) == nil)
    }

    @Test func `a long password is encoded on one line`() throws {
        let password = String(repeating: "ü", count: 10_000)
        let header = try #require(Request.authorizationHeader(user: "u", password: password))
        #expect(!header.value.contains { $0.isNewline })
        let decoded = try #require(Data(base64Encoded: String(header.value.dropFirst(6))))
        #expect(decoded == Data("u:\(password)".utf8))
    }
}
