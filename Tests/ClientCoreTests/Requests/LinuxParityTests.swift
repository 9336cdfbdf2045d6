internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Uses of the API with which a client based on the URLSession of Linux crashes, hangs or returns wrong results.
@Suite(.timeLimit(.minutes(5))) struct LinuxParityTests {
    private typealias Header = ScriptedServer.Header

    private static let basic = Header("WWW-Authenticate", "Basic realm=\"netwatch\"")

    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    /// Retries until a response is accepted.
    private struct Again: RequestRetrier {
        var delay: TimeInterval = 0
        let asked = Recorder<UInt>()

        func should(
            _ manager: SessionManager,
            retry request: Request,
            with error: any Error,
            completion: @escaping RequestRetryCompletion
        ) {
            asked.record(request.retryCount)
            completion(true, delay)
        }
    }

    // MARK: Retrying

    @Test func `a request is retried after its bodies have reported progress`() async throws {
        let body = Data(repeating: 1, count: 100_000)
        let server = try ScriptedServer { request in
            let status = request.number < 3 ? 503 : 200
            return .respond(status: status, body: request.body)
        }
        session.retrier = Again()
        let request = session.upload(body, to: server.url).validate()
        #expect(try await request.data == body)
        #expect(server.requests.map(\.body.count) == [100_000, 100_000, 100_000])
        #expect(request.uploadProgress.fractionCompleted == 1)
        #expect(request.progress.completedUnitCount == 100_000)
    }

    @Test func `a 404 with a body is retried`() async throws {
        let server = try ScriptedServer { request in
            request.number < 3 ? .respond(status: 404, body: Array("not yet".utf8)) : .respond("here")
        }
        session.retrier = Again()
        #expect(try await session.request(server.url).validate().string == "here")
    }

    @Test func `cancelling a request during a retrier's delay ends it`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let retrier = Again(delay: 3600)
        session.retrier = retrier
        let errors = Recorder<URLError.Code?>()
        let request = session.request(server.url).validate().response(queue: .global()) { response in
            errors.record((response.error as? URLError)?.code)
        }
        try await retrier.asked.wait { !$0.isEmpty }
        request.cancel()
        try await errors.wait { !$0.isEmpty }
        #expect(errors.values == [.cancelled])
    }

    // MARK: Sending

    /// The sizes are below and above the threshold up to which a form is kept in memory.
    @Test(arguments: [0, 100, 200_000]) func `a form of any size is sent`(size: Int) async throws {
        let server = try ScriptedServer { .respond($0.values(of: "Content-Type").first ?? "") }
        let session = session
        // Uses a recorder, because the thread sanitizer recognizes its lock. The sanitizer does not recognize that a
        // continuation synchronizes threads if it is resumed before its task suspends.
        let encoded = Recorder<SessionManager.MultipartFormDataEncodingResult>()
        session.upload(
            multipartFormData: { $0.append(Data(repeating: 0x78, count: size), withName: "part") },
            usingThreshold: 1000,
            to: server.url,
            queue: .global(),
            encodingCompletion: { encoded.record($0) }
        )
        try await encoded.wait { !$0.isEmpty }
        guard case .success(let request, let isFromDisk, let file) = encoded.values[0] else {
            throw Unexpected(outcome: "\(encoded.values)")
        }
        #expect(try await request.string.hasPrefix("multipart/form-data; boundary="))
        #expect(isFromDisk == (size > 1000))
        #expect((file != nil) == isFromDisk)
        let body = try #require(server.requests.first).body
        #expect(body.count { $0 == 0x78 } >= size)
        #expect(body.suffix(4) == Array("--\r\n".utf8)[...])
    }

    @Test func `a stream is sent`() async throws {
        let server = try ScriptedServer { .respond(status: 200, body: $0.body) }
        let body = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        #expect(try await session.upload(InputStream(data: body), to: server.url).data == body)
    }

    // MARK: Credentials

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
                return .respond(status: 401, headers: [Header("WWW-Authenticate", challenge)])
            }
            return .respond("welcome")
        }
        let right = session.request("\(server.url)/page").authenticate(user: "user", password: "secret")
        #expect(try await right.string == "welcome")
        let wrong = session.request("\(server.url)/page").authenticate(user: "user", password: "guess")
        #expect(await wrong.response().response?.statusCode == 401)
    }

    // MARK: Properties of a response

    @Test func `a response has metrics`() async throws {
        let server = try ScriptedServer { _ in .respond("body") }
        let metrics = try #require(await session.request(server.url).response().metrics)
        let transaction = try #require(metrics.transactionMetrics.first)
        #expect(metrics.transactionMetrics.count == 1)
        #expect(transaction.networkProtocolName != nil)
        #expect(transaction.remotePort == Int(server.port))
        #expect(transaction.countOfResponseBodyBytesReceived == 4)
        #expect(try #require(transaction.fetchStartDate) <= #require(transaction.responseEndDate))
    }

    @Test func `a cancelled download has resume data that continues it`() async throws {
        let server = try ScriptedServer { request in
            let version = Header("ETag", "\"one\"")
            guard request.values(of: "Range").isEmpty else {
                let part = Header("Content-Range", "bytes 5-9/10")
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

    // MARK: Without a network

    @Test(
        .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
        arguments: ["http://192.0.2.1/", "http://[2001:db8::1]/"]
    )
    func `an address without a route fails with notConnectedToInternet`(url: String) async throws {
        let nowhere = try NetworkNamespace()
        let engine = try TransferEngine(networkNamespace: nowhere.path)
        let session = SessionManager(engine: engine, monitor: PathMonitor(of: nowhere))
        let error = await session.request(url).response().error
        #expect((error as? URLError)?.code == .notConnectedToInternet)
        #expect(error?.transferFailure?.osErrno == ENETUNREACH)
        #expect(error?.transferFailure?.bytesSent == 0)
    }

    /// If no name server can be reached, the resolver cannot report that a name does not exist. The kernel's routes
    /// decide whether the client is offline.
    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `a name without a reachable resolver fails with notConnectedToInternet and the resolver's reason`()
        async throws
    {
        let nowhere = try NetworkNamespace()
        let engine = try TransferEngine(
            resolver: NameResolver(networkNamespace: nowhere.path),
            networkNamespace: nowhere.path
        )
        let session = SessionManager(engine: engine, monitor: PathMonitor(of: nowhere))
        let error = await session.request("http://netwatch.example/").response().error
        #expect((error as? URLError)?.code == .notConnectedToInternet)
        #expect(error?.transferFailure?.resolverCode == EAI_AGAIN)
        #expect(error?.transferFailure?.phase == .resolve)
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
