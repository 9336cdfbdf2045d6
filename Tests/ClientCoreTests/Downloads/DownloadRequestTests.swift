internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Download requests: the ranges they request, and the resulting files.
@Suite(.timeLimit(.minutes(5))) struct DownloadRequestTests {
    private let session: SessionManager
    private let directory: ScratchDirectory

    init() throws {
        session = SessionManager(engine: try TransferEngine())
        directory = try ScratchDirectory()
    }

    private static let fields = "ETag: \"1\"\r\nAccept-Ranges: bytes\r\n"

    /// Sends the first half of `0123456789` and closes the connection. Sends the second half in response to a range
    /// request for it.
    private static func halves(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
        guard request.values(of: "Range") == ["bytes=5-"] else {
            return .send("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 10\r\n\r\n01234", then: .close)
        }
        return .respond(
            status: 206,
            headers: [.init("ETag", "\"1\""), .init("Content-Range", "bytes 5-9/10")],
            body: Array("56789".utf8)
        )
    }

    @Test func `a redirected download resumes from its original URL`() async throws {
        let server = try ScriptedServer { request in
            guard request.target == "/real" else {
                return .respond(status: 302, headers: [.init("Location", "/real")])
            }
            return Self.halves(request)
        }
        let place = URL(fileURLWithPath: directory.path).appendingPathComponent("part")
        let first = await session.download(server.url + "/file", keepingPartialFileAt: place).response()
        #expect((first.error as? URLError)?.code == .networkConnectionLost)
        let second = await session.download(server.url + "/file", keepingPartialFileAt: place)
            .responseString()
        #expect(second.value == "0123456789")
        #expect(second.temporaryURL == place)
        #expect(second.response?.statusCode == 206)
        #expect(server.requests.map(\.target) == ["/file", "/real", "/file", "/real"])
    }

    @Test func `the fields of a range request replace those of the program and the session`() async throws {
        let server = try ScriptedServer { Self.halves($0) }
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = ["if-range": "\"session\""]
        let session = SessionManager(configuration: configuration)
        let place = URL(fileURLWithPath: directory.file("part"))
        let headers = ["accept-encoding": "gzip"]
        _ = await session.download(server.url, headers: headers, keepingPartialFileAt: place).response()
        let second = session.download(server.url, headers: headers, keepingPartialFileAt: place)
        #expect(try await String(decoding: second.data, as: UTF8.self) == "0123456789")
        let sent = try #require(server.requests.last)
        #expect(sent.values(of: "Range") == ["bytes=5-"])
        #expect(sent.values(of: "If-Range") == ["\"1\""])
        #expect(sent.values(of: "Accept-Encoding") == ["identity"])
        #expect(second.task?.currentRequest?.value(forHTTPHeaderField: "Range") == "bytes=5-")
        #expect(second.task?.currentRequest?.value(forHTTPHeaderField: "Accept-Encoding") == "identity")
    }

    @Test func `a complete file of unknown length is checked by requesting its last byte`() async throws {
        let server = try ScriptedServer { request in
            switch request.values(of: "Range").first {
            case "bytes=5-":
                return .respond(status: 416, headers: [.init("Content-Range", "bytes */5")])
            case "bytes=4-":
                return .respond(
                    status: 206,
                    headers: [.init("ETag", "\"1\""), .init("Content-Range", "bytes 4-4/5")],
                    body: Array("4".utf8)
                )
            default:
                let head = "HTTP/1.1 200 OK\r\n\(Self.fields)Transfer-Encoding: chunked\r\n\r\n"
                return .send(head + "5\r\n01234\r\n", then: .close)
            }
        }
        let place = URL(fileURLWithPath: directory.path).appendingPathComponent("part")
        _ = await session.download(server.url, keepingPartialFileAt: place).response()
        let second = await session.download(server.url, keepingPartialFileAt: place).validate()
            .responseString()
        #expect(second.value == "01234")
        #expect(server.requests.flatMap { $0.values(of: "Range") } == ["bytes=5-", "bytes=4-"])
    }

    @Test func `a new version is downloaded again without a range`() async throws {
        let server = try ScriptedServer { request in
            if request.number == 1 { return Self.halves(request) }
            guard request.values(of: "Range").isEmpty else { return .respond(status: 412) }
            return .respond(status: 200, headers: [.init("ETag", "\"2\"")], body: Array("new".utf8))
        }
        let first = await session.download(server.url).response()
        let data = try #require(first.resumeData)
        #expect(try await session.download(resumingWith: data).string == "new")
        #expect(server.requests.map { $0.values(of: "Range") } == [[], ["bytes=5-"], []])
    }

    @Test func `a download that fails validation replaces no file`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 404, body: Array("missing".utf8)) }
        let place = URL(fileURLWithPath: directory.path).appendingPathComponent("file")
        try Data("old".utf8).write(to: place)
        // The request is started by hand: otherwise the file may be moved before the validation is added.
        session.startRequestsImmediately = false
        let response = await session.download(server.url, to: { _, _ in (place, [.removePreviousFile]) })
            .validate().response()
        #expect((response.error as? AFError)?.responseCode == 404)
        #expect(try Data(contentsOf: place) == Data("old".utf8))
        let body = try #require(response.temporaryURL)
        #expect(try Data(contentsOf: body) == Data("missing".utf8))
        try FileManager.default.removeItem(at: body)
    }

    @Test(arguments: [true, false])
    func `an incomplete file is reported only if it is kept`(isResumable: Bool) async throws {
        let fields = isResumable ? Self.fields : ""
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 10\r\n\r\n01234", then: .close)
        }
        let response = await session.download(server.url).response()
        #expect((response.error as? URLError)?.code == .networkConnectionLost)
        #expect((response.resumeData != nil) == isResumable)
        let isThere = response.temporaryURL.map { FileManager.default.fileExists(atPath: $0.path) }
        #expect(isThere == (isResumable ? true : nil))
        if let file = response.temporaryURL { try FileManager.default.removeItem(at: file) }
    }

    // MARK: Resuming

    /// Downloads from `server` until the connection is lost after five bytes, and returns the resume data.
    private func brokenOff(_ server: ScriptedServer) async throws -> Data {
        let response = await session.download(server.url).response()
        #expect((response.error as? URLError)?.code == .networkConnectionLost)
        return try #require(response.resumeData)
    }

    private static var firstFive: ScriptedServer.Action {
        .send(
            "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n01234",
            then: .close
        )
    }

    @Test func `a part of another version is discarded and the whole file is requested`() async throws {
        let server = try ScriptedServer { request in
            if request.number == 1 { return Self.firstFive }
            guard !request.values(of: "Range").isEmpty else { return .respond("abcdefghij") }
            let headers = [ScriptedServer.Header("ETag", "\"two\""), .init("Content-Range", "bytes 5-9/10")]
            return .respond(status: 206, headers: headers, body: Array("fghij".utf8))
        }
        let request = session.download(resumingWith: try await brokenOff(server))
        #expect(try await String(decoding: request.data, as: UTF8.self) == "abcdefghij")
        #expect(server.requests.map { $0.values(of: "Range") } == [[], ["bytes=5-"], []])
        #expect(server.requests.last?.values(of: "If-Range") == [])
    }

    private static func response(_ status: String, tag: [UInt8], _ fields: String, _ body: String) -> [UInt8]
    {
        let start = Array("HTTP/1.1 \(status)\r\nConnection: close\r\nETag: ".utf8)
        return start + tag + Array("\r\n\(fields)\r\n\r\n\(body)".utf8)
    }

    /// The entity tag of the first response and that of the part, and the resulting file.
    ///
    /// The bytes E9, in ISO 8859-1, and C3 A9, in UTF-8, are the same character. So are C3 A9 and 65 CC 81, and Swift
    /// compares their strings as equal.
    @Test(
        arguments: [
            ([0x22, 0xe9, 0x22], [0x22, 0xe9, 0x22], "0123456789"),
            ([0x22, 0xe9, 0x22], [0x22, 0xc3, 0xa9, 0x22], "abcdefghij"),
            ([0x22, 0xc3, 0xa9, 0x22], [0x22, 0x65, 0xcc, 0x81, 0x22], "abcdefghij"),
        ] as [([UInt8], [UInt8], String)]
    )
    func `an entity tag beyond ASCII is sent and compared byte for byte`(
        tag: [UInt8],
        partTag: [UInt8],
        expected: String
    ) async throws {
        let requests = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            requests.record(peer.read())
            let whole = "Accept-Ranges: bytes\r\nContent-Length: 10"
            let part = "Content-Range: bytes 5-9/10\r\nContent-Length: 5"
            switch requests.values.count {
            case 1: peer.write(Self.response("200 OK", tag: tag, whole, "01234"))
            case 2: peer.write(Self.response("206 Part", tag: partTag, part, "56789"))
            default: peer.write(Self.response("200 OK", tag: partTag, whole, "abcdefghij"))
            }
        }
        let first = await session.download("http://127.0.0.1:\(server.port)/").response()
        #expect((first.error as? URLError)?.code == .networkConnectionLost)
        let rest = session.download(resumingWith: try #require(first.resumeData))
        #expect(try await String(decoding: rest.data, as: UTF8.self) == expected)
        let sent = requests.values
        try #require(sent.count == (tag == partTag ? 2 : 3))
        let condition = Array("If-Range: ".utf8) + tag + Array("\r\n".utf8)
        #expect(sent[1].firstRange(of: condition) != nil)
        #expect(sent.dropFirst(2).allSatisfy { $0.firstRange(of: Array("If-Range".utf8)) == nil })
    }

    @Test func `a Content-Length near the integer limit does not overflow`() async throws {
        let server = try ScriptedServer { request in
            if request.number == 1 { return Self.firstFive }
            let head = "HTTP/1.1 200 OK\r\nETag: \"two\"\r\nContent-Length: \(Int64.max)\r\n\r\n"
            return .send("\(head)56789", then: .close)
        }
        let request = session.download(resumingWith: try await brokenOff(server))
        let error = await request.response().error
        #expect((error as? URLError)?.code == .networkConnectionLost, "\(String(describing: error))")
    }

    /// The server sends a part without a `Content-Length`, of a file of unknown length.
    @Test(arguments: [("5678", true), ("56789", false), ("567890", true)])
    func `a part has as many bytes as its range`(body: String, isError: Bool) async throws {
        let server = try ScriptedServer { request in
            if request.number == 1 {
                let head = "HTTP/1.1 206 OK\r\nETag: \"1\"\r\nContent-Range: bytes 0-9/*\r\n\r\n"
                return .send(head + "01234", then: .close)
            }
            let head = "HTTP/1.1 206 OK\r\nETag: \"1\"\r\nContent-Range: bytes 5-9/*\r\n\r\n"
            return .send(head + body, then: .close)
        }
        let request = session.download(resumingWith: try await brokenOff(server))
        let response = await request.responseString()
        #expect((response.error != nil) == isError, "\(response)")
        if !isError { #expect(response.value == "0123456789") }
    }

    @Test(arguments: [("bytes=0-4", "bytes 0-4/10"), ("bytes=5-9", "bytes 5-9/10")])
    func `a complete part is a success if the program asked for it`(range: String, part: String) async throws
    {
        let server = try ScriptedServer { _ in
            let headers = [ScriptedServer.Header("ETag", "\"1\""), .init("Content-Range", part)]
            return .respond(status: 206, headers: headers, body: Array("01234".utf8))
        }
        let request = session.download(server.url, headers: ["Range": range])
        #expect(try await String(decoding: request.data, as: UTF8.self) == "01234")
        #expect(server.requests.map { $0.values(of: "Range") } == [[range]])
    }

    @Test func `an encoded body that is truncated does not reach its destination`() async throws {
        let server = try ScriptedServer { _ in
            // The beginning of a gzip body, which is decoded to 10 bytes.
            let body: [UInt8] =
                [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 0, 10, 0, 245, 255] + Array("0123456789".utf8)
            return .respond(status: 200, headers: [.init("Content-Encoding", "gzip")], body: body)
        }
        let place = URL(fileURLWithPath: directory.file("place"))
        var request = URLRequest(url: try #require(URL(string: server.url)))
        request.setValue("gzip", forHTTPHeaderField: "Accept-Encoding")
        let response = await session.download(request) { _, _ in (place, []) }.response()
        #expect((response.error as? URLError)?.code == .networkConnectionLost)
        #expect(!FileManager.default.fileExists(atPath: place.path))
    }

    @Test func `a redirected download is resumed through the redirect`() async throws {
        let server = try ScriptedServer { request in
            guard request.target == "/once" else {
                return .respond(status: 302, headers: [.init("Location", "/once")])
            }
            guard !request.values(of: "Range").isEmpty else { return Self.firstFive }
            let headers = [ScriptedServer.Header("ETag", "\"one\""), .init("Content-Range", "bytes 5-9/10")]
            return .respond(status: 206, headers: headers, body: Array("56789".utf8))
        }
        let place = URL(fileURLWithPath: directory.file("kept"))
        let first = session.download("\(server.url)/file", keepingPartialFileAt: place)
        #expect((await first.response().error as? URLError)?.code == .networkConnectionLost)
        let second = session.download("\(server.url)/file", keepingPartialFileAt: place)
        #expect(try await String(decoding: second.data, as: UTF8.self) == "0123456789")
        #expect(server.requests.map(\.target) == ["/file", "/once", "/file", "/once"])
    }

    @Test func `a cancelled download has resume data that continues it`() async throws {
        let server = try ScriptedServer { request in
            let version = ScriptedServer.Header("ETag", "\"one\"")
            guard request.values(of: "Range").isEmpty else {
                let part = ScriptedServer.Header("Content-Range", "bytes 5-9/10")
                return .respond(status: 206, headers: [version, part], body: Array("56789".utf8))
            }
            let head =
                "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n"
            return .send("\(head)01234", then: .stall(then: .close))
        }
        let request = session.download(server.url)
        let moved = Recorder<Int64>()
        request.downloadProgress(queue: .global()) { moved.record($0.completedUnitCount) }
        try await moved.wait { $0.contains { $0 == 5 } }
        request.cancel()
        let resumeData = try #require(await request.response().resumeData)
        let rest = session.download(resumingWith: resumeData)
        #expect(try await String(decoding: rest.data, as: UTF8.self) == "0123456789")
    }
}
