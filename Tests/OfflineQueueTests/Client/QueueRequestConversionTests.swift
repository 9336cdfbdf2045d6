internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Conversions between `URLRequest` and `QueueRequest`.
@Suite struct QueueRequestConversionTests {
    private func urlRequest(_ url: String = "http://example.com/a%20b?c=d") throws -> URLRequest {
        URLRequest(url: try #require(URL(string: url)))
    }

    @Test func `a request is the same after two conversions`() throws {
        var request = try urlRequest()
        request.httpMethod = "PATCH"
        request.httpBody = Data("body".utf8)
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        request.setValue("1", forHTTPHeaderField: "X-A")
        let queued = try QueueRequest(request)
        #expect(queued.method == "PATCH" && queued.url == "http://example.com/a%20b?c=d")
        #expect(queued.headers.map(\.name) == ["Content-Type", "X-A"])
        #expect(queued.body == .data(Data("body".utf8)))
        #expect(try QueueRequest(try URLRequest(queued)) == queued)
    }

    @Test func `a request without method and body becomes a GET request without body`() throws {
        let queued = try QueueRequest(try urlRequest())
        #expect(queued.method == "GET" && queued.body == .data(Data()) && queued.headers.isEmpty)
        #expect(try URLRequest(queued).httpBody == nil)
    }

    @Test func `the content length is left out`() throws {
        var request = try urlRequest()
        request.setValue("4", forHTTPHeaderField: "content-length")
        #expect(try QueueRequest(request).headers.isEmpty)
    }

    @Test func `a request with a body stream cannot be converted`() throws {
        var request = try urlRequest()
        request.httpBodyStream = InputStream(data: Data("x".utf8))
        let error = #expect(throws: QueueError.self) { try QueueRequest(request) }
        #expect(error?.code == .bodyUnavailable)
    }

    @Test func `a request that permits only cached responses cannot be converted`() throws {
        var request = try urlRequest()
        request.cachePolicy = .returnCacheDataDontLoad
        #expect(#expect(throws: QueueError.self) { try QueueRequest(request) }?.code == .invalidOption)
    }

    @Test func `a file becomes a body stream, and a missing file is an error`() throws {
        let scratch = try ScratchDirectory()
        let path = scratch.file("body")
        let queued = QueueRequest(method: "PUT", url: "http://a/", body: .file(path: path))
        let error = #expect(throws: QueueError.self) { try URLRequest(queued) }
        #expect(error?.code == .bodyFileUnusable && error?.path == path)
        try Data("x".utf8).write(to: URL(fileURLWithPath: path))
        let stream = try #require(try URLRequest(queued).httpBodyStream)
        stream.open()
        var byte: UInt8 = 0
        #expect(stream.read(&byte, maxLength: 1) == 1 && byte == 0x78)
    }

    @Test func `an upload of a queue and an invalid URL cannot be converted`() throws {
        let staged = QueueRequest(method: "PUT", url: "http://a/", body: .staged(id: "s", size: 1))
        #expect(#expect(throws: QueueError.self) { try URLRequest(staged) }?.code == .bodyUnavailable)
        let invalid = QueueRequest(method: "PUT", url: "http://[")
        #expect(#expect(throws: QueueError.self) { try URLRequest(invalid) }?.code == .invalidURL)
    }
}
