import ClientCore
import Foundation
import NetwatchTestSupport
import Testing

@Suite struct ServersTests {
    @Test func `httpbin and nginx respond`() async throws {
        let httpbin = try await HTTPBin.shared()
        let nginx = try await Nginx.shared()
        try Data("hello".utf8).write(to: nginx.root.appendingPathComponent("hello.txt"))
        let pages = [
            ("\(httpbin.url)/status/204", 204), ("\(nginx.url)/hello.txt", 200), ("\(nginx.url)/none", 404),
            ("\(nginx.url)/gzip/hello.txt", 200), ("\(nginx.url)/redirect/hello.txt", 200),
            ("\(nginx.url)/basic/hello.txt", 401),
        ]
        for (page, status) in pages {
            let response = await ClientCore.request(page).response()
            #expect(response.response?.statusCode == status, "\(page)")
        }
        let put = await ClientCore.upload(Data("new".utf8), to: "\(nginx.url)/put/file", method: .put)
            .response()
        #expect(put.response?.statusCode == 201)
    }
}
