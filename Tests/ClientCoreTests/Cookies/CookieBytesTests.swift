internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Cookies whose bytes are not ASCII.
@Suite(.timeLimit(.minutes(5))) struct CookieBytesTests {
    @Test(arguments: [[0xe9], [0xc3, 0xa9], [0xc3, 0xa9, 0xff]])
    func `a cookie is sent with the bytes that the server has set`(value: [UInt8]) async throws {
        let requests = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            requests.record(peer.read())
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nSet-Cookie: a="
            peer.write(Array(head.utf8) + value + Array("\r\n\r\n".utf8))
        }
        let settings = SessionSettings(.ephemeral)
        let session = SessionManager(engine: try TransferEngine(), settings: settings)
        for _ in 0..<2 { _ = await session.request("http://127.0.0.1:\(server.port)/").response() }
        let line = Array("Cookie: a=".utf8) + value + Array("\r\n".utf8)
        #expect(requests.values.count == 2)
        #expect(requests.values.last?.firstRange(of: line) != nil)
    }

    @Test func `fields and cookies that the program sets are sent as UTF-8`() async throws {
        let text = "\u{e9}\u{f7e9}"
        let requests = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            requests.record(peer.read())
            peer.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        }
        let configuration = URLSessionConfiguration.ephemeral
        let cookie = try #require(
            HTTPCookie(properties: [.name: "a", .value: text, .domain: "127.0.0.1", .path: "/"])
        )
        configuration.httpCookieStorage?.setCookie(cookie)
        configuration.httpAdditionalHeaders = ["X-Session": text]
        let settings = SessionSettings(configuration)
        let session = SessionManager(engine: try TransferEngine(), settings: settings)
        _ = await session.request("http://127.0.0.1:\(server.port)/", headers: ["X-Request": text]).response()
        let sent = try #require(requests.values.first)
        for line in ["Cookie: a=\(text)\r\n", "X-Session: \(text)\r\n", "X-Request: \(text)\r\n"] {
            #expect(sent.firstRange(of: Array(line.utf8)) != nil, "\(line)")
        }
    }
}
