import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HTTPMethodTests {
    @Test(arguments: [HTTPMethod.get, .post, .put, .patch, .delete, .trace])
    func `the method is sent`(method: HTTPMethod) async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.request("\(httpbin.url)/anything", method: method)
        #expect(try await request.echo.method == method.rawValue)
        #expect(request.description == "\(method.rawValue) \(httpbin.url)/anything (200)")
    }

    @Test func `a response to HEAD has no body`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await ClientCore.request("\(httpbin.url)/get", method: .head).responseData()
        #expect(response.response?.statusCode == 200)
        #expect(response.result.value == Data())
    }

    @Test func `OPTIONS returns the allowed methods`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await ClientCore.request("\(httpbin.url)/put", method: .options).response()
        let allowed = response.response?.value(forHTTPHeaderField: "Allow") ?? ""
        #expect(allowed.contains("PUT"))
        #expect(!allowed.contains("GET"))
    }

    @Test func `httpbin's pages accept only their method`() async throws {
        let httpbin = try await HTTPBin.shared()
        let calls: [(String, HTTPMethod)] = [
            ("get", .get), ("post", .post), ("put", .put), ("patch", .patch), ("delete", .delete),
        ]
        for (page, method) in calls {
            let right = await ClientCore.request("\(httpbin.url)/\(page)", method: method).response()
            #expect(right.response?.statusCode == 200, "\(page)")
            let wrong: HTTPMethod = method == .post ? .put : .post
            let other = await ClientCore.request("\(httpbin.url)/\(page)", method: wrong).response()
            #expect(other.response?.statusCode == 405, "\(page)")
        }
    }

    @Test func `CONNECT is refused before anything is sent`() async throws {
        let server = try ScriptedServer()
        let error: Error? = await once { done in
            ClientCore.request(server.url, method: .connect).response { done($0.error) }
        }
        #expect((error as? AFError)?.isURLRequestValidationError == true)
        #expect(server.connectionCount == 0)
    }
}
