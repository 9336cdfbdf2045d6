import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

// The line that keeps the calls of a program for Alamofire 4; see *Migrating from Alamofire 4*.
// swift-format-ignore: AlwaysUseLowerCamelCase
private let Alamofire = SessionManager.default

@Suite(.timeLimit(.minutes(5))) struct MakingRequestsTests {
    @Test func `calls with the name Alamofire need one alias`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        let requested = await once {
            Alamofire.request("\(server.url)/a").responseString(completionHandler: $0)
        }
        let uploaded = await once { done in
            Alamofire.upload(Data("x".utf8), to: "\(server.url)/b").responseString(completionHandler: done)
        }
        let downloaded = await once { done in
            Alamofire.download("\(server.url)/c").responseString(completionHandler: done)
        }
        #expect([requested.value, uploaded.value, downloaded.value] == ["/a", "/b", "/c"])
        try downloaded.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `a request with only a URL is a GET`() async throws {
        let httpbin = try await HTTPBin.shared()
        let json: [String: Any]? = await once { done in
            ClientCore.request("\(httpbin.url)/anything").responseJSON { response in
                #expect(response.request?.url?.absoluteString == "\(httpbin.url)/anything")
                #expect(response.response?.statusCode == 200)
                #expect(response.data?.isEmpty == false)
                done(response.result.value as? [String: Any])
            }
        }
        #expect(json?["method"] as? String == "GET")
    }

    @Test func `the free functions, AF and the default session are the same session`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url = "\(httpbin.url)/headers"
        let scratch = try ScratchDirectory()
        let file = URL(fileURLWithPath: scratch.file("headers"))
        let free = try await ClientCore.request(url).string
        #expect(try await SessionManager.default.request(url).string == free)
        #expect(try await AF.request(url).string == free)
        let download = ClientCore.download(url) { _, _ in (file, []) }
        #expect(await download.responseString().result.value == free)
        let upload = ClientCore.upload(Data("body".utf8), to: "\(httpbin.url)/anything")
        let echo = try await upload.echo
        #expect(echo.data == "body")
        #expect(echo.headers["User-Agent"] == SessionManager.defaultHTTPHeaders["User-Agent"])
    }

    @Test func `an invalid request calls its handlers with an error`() async throws {
        let invalid = await once { done in
            ClientCore.request("").responseJSON { done(($0.result.error, $0.data)) }
        }
        #expect((invalid.0 as? AFError)?.isInvalidURLError == true)
        #expect(invalid.1 == Data())
        let unencodable: Error? = await once { done in
            let parameters: Parameters = ["number": Double.nan]
            ClientCore.request(
                "http://127.0.0.1:1/",
                method: .post,
                parameters: parameters,
                encoding: JSONEncoding.default
            ).response { done($0.error) }
        }
        #expect((unencodable as? AFError)?.isParameterEncodingError == true)
    }

    @Test func `a custom URLRequest is sent unchanged`() async throws {
        let httpbin = try await HTTPBin.shared()
        var urlRequest = URLRequest(url: try #require(URL(string: "\(httpbin.url)/anything")))
        urlRequest.httpMethod = "PUT"
        urlRequest.httpBody = try JSONSerialization.data(withJSONObject: ["foo": "bar"])
        urlRequest.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let echo = try await ClientCore.request(urlRequest).echo
        #expect(echo.method == "PUT")
        #expect(echo.json == ["foo": "bar"])
    }

    @Test func `each function returns its type of request`() throws {
        let session = SessionManager()
        session.startRequestsImmediately = false
        let data: DataRequest = session.request("http://127.0.0.1/")
        let download: DownloadRequest = session.download("http://127.0.0.1/")
        let upload: UploadRequest = session.upload(Data(), to: "http://127.0.0.1/")
        let all: [Request] = [data, download, upload]
        #expect(all.map { $0.request?.httpMethod } == ["GET", "GET", "POST"])
        #expect(upload as DataRequest === upload)
        for request in all { request.cancel() }
    }

    @Test func `calls can be chained`() async throws {
        let server = try ScriptedServer()
        let request = ClientCore.request(server.url)
        let chained =
            request
            .authenticate(user: "user", password: "password")
            .validate()
            .validate(statusCode: 200..<300)
            .downloadProgress { _ in }
            .response { _ in }
            .responseData { _ in }
            .responseString { _ in }
            .suspend()
            .resume()
        #expect(chained === request)
        #expect(await chained.response().error == nil)
    }

    @Test(arguments: [404, 418, 503])
    func `no status is an error by itself`(status: Int) async throws {
        let httpbin = try await HTTPBin.shared()
        let response: DefaultDataResponse = await once { done in
            ClientCore.request("\(httpbin.url)/status/\(status)").response(completionHandler: done)
        }
        #expect(response.error == nil)
        #expect(response.response?.statusCode == status)
    }
}
