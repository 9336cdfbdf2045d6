import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HTTPHeadersTests {
    @Test func `header fields are sent with a request`() async throws {
        let httpbin = try await HTTPBin.shared()
        let headers: HTTPHeaders = [
            "Authorization": "Basic dXNlcjpwYXNzd29yZA==",
            "Accept": "application/json",
        ]
        let value: [String: String]? = await once { done in
            ClientCore.request("\(httpbin.url)/headers", headers: headers).responseJSON { response in
                done((response.result.value as? [String: Any])?["headers"] as? [String: String])
            }
        }
        #expect(value?["Authorization"] == headers["Authorization"])
        #expect(value?["Accept"] == "application/json")
    }

    @Test func `names that differ in case are the same field`() async throws {
        let server = try ScriptedServer()
        _ = await ClientCore.request(server.url, headers: ["x-name": "b", "X-Name": "a"]).response()
        #expect(server.requests.first?.values(of: "X-Name") == ["b"])
    }

    @Test func `a header field overrides a default one`() async throws {
        let httpbin = try await HTTPBin.shared()
        let headers: HTTPHeaders = ["user-agent": "mine", "accept-language": "ia"]
        let sent = try await ClientCore.request("\(httpbin.url)/anything", headers: headers).echo.headers
        #expect(sent["User-Agent"] == "mine")
        #expect(sent["Accept-Language"] == "ia")
    }

    @Test func `a header field with a line break is refused`() async throws {
        let server = try ScriptedServer()
        let error: Error? = await once { done in
            ClientCore.request(server.url, headers: ["X-Name": "a\r\nX-Other: b"]).response {
                done($0.error)
            }
        }
        #expect((error as? AFError)?.isURLRequestValidationError == true)
        #expect(server.connectionCount == 0)
    }

    @Test func `the default header fields are as documented`() throws {
        let headers = SessionManager.defaultHTTPHeaders
        let encodings = try #require(headers["Accept-Encoding"])
        #expect(encodings.hasPrefix("br;q=1.0, gzip;q=0.9") || encodings.hasPrefix("gzip;q=1.0"))
        #expect(!encodings.contains("compress"))
        let languages = try #require(headers["Accept-Language"]).components(separatedBy: ", ")
        #expect((1...6).contains(languages.count))
        #expect(languages[0].hasSuffix(";q=1.0"))
        let agent = try #require(headers["User-Agent"])
        #expect(agent.contains("; Linux "))
        #expect(agent.range(of: #" netwatch/[0-9.]+$"#, options: .regularExpression) != nil)
    }

    @Test(arguments: [("gzip", "gzipped"), ("deflate", "deflated"), ("brotli", "brotli")])
    func `every encoding that the default session accepts is decoded`(page: String, key: String) async throws
    {
        let httpbin = try await HTTPBin.shared()
        let json: [String: Any]? = await once { done in
            ClientCore.request("\(httpbin.url)/\(page)").responseJSON { response in
                done(response.result.value as? [String: Any])
            }
        }
        #expect(json?[key] as? Bool == true)
        let headers = json?["headers"] as? [String: String]
        #expect(headers?["Accept-Encoding"] == SessionManager.defaultHTTPHeaders["Accept-Encoding"])
    }
}
