import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Resuming a Download".
@Suite(.timeLimit(.minutes(5))) struct ResumingDownloadsTests {
    private let scratch: ScratchDirectory
    private let sessionManager = SessionManager(configuration: .ephemeral)

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func place(_ name: String) -> URL {
        URL(fileURLWithPath: scratch.file(name))
    }

    /// Returns random bytes that repeat after a prime number of bytes. If parts are joined at a wrong offset, the
    /// result therefore differs from the original.
    private static func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        let period = (0..<min(count, 10_007)).map { _ in UInt8.random(in: 0...255, using: &generator) }
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += period.prefix(count - bytes.count) }
        return bytes
    }

    private struct NeverInterrupted: Error {}

    /// Cancels a download after its first bytes, and returns the resume data. If the download completes before it is
    /// cancelled, tries again.
    private func resumeData(of url: String) async throws -> Data {
        for _ in 0..<20 {
            let progress = Recorder<Int64>()
            let request = sessionManager.download(url)
                .downloadProgress(queue: DispatchQueue(label: "progress")) {
                    progress.record($0.completedUnitCount)
                }
            async let response = once { request.response(completionHandler: $0) }
            try await progress.waitForLast { $0 > 0 }
            request.cancel()
            let ended = await response
            if let resumeData = ended.resumeData {
                #expect((ended.error as? URLError)?.code == .cancelled)
                return resumeData
            }
            #expect(ended.error == nil)
            try ended.temporaryURL.map(FileManager.default.removeItem(at:))
        }
        throw NeverInterrupted()
    }

    /// The content of a server that serves one version of a file, with ranges. Responses to requests for the whole file
    /// are interrupted until ``interrupts(_:)`` disables this.
    private final class Versions: @unchecked Sendable {
        private let lock = NSLock()
        private var content: [UInt8]
        private var etag: String
        private var isInterrupting = true

        init(_ content: [UInt8], etag: String = "\"v1\"") {
            self.content = content
            self.etag = etag
        }

        func change(to content: [UInt8], etag: String) {
            lock.lock(); defer { lock.unlock() }
            self.content = content
            self.etag = etag
        }

        func interrupts(_ isInterrupting: Bool) {
            lock.lock(); defer { lock.unlock() }
            self.isInterrupting = isInterrupting
        }

        /// - Parameter ignoresCondition: Whether the server ignores `If-Range`.
        func answer(_ request: ScriptedServer.Request, ignoresCondition: Bool = false)
            -> ScriptedServer.Action
        {
            lock.lock(); defer { lock.unlock() }
            let head = "ETag: \(etag)\r\nAccept-Ranges: bytes\r\n"
            let start = request.values(of: "Range").first.flatMap { Int($0.dropFirst(6).dropLast()) }
            let isSame = ignoresCondition || request.values(of: "If-Range") == [etag]
            guard let start, isSame else { return whole(head) }
            guard start < content.count else {
                let field = "Content-Range: bytes */\(content.count)\r\nContent-Length: 0\r\n\r\n"
                return .send("HTTP/1.1 416 Too Far\r\n\(head)\(field)", then: .keep)
            }
            let rest = content[start...]
            let range = "bytes \(start)-\(content.count - 1)/\(content.count)"
            let fields = "Content-Range: \(range)\r\nContent-Length: \(rest.count)\r\n\r\n"
            return .send(Array("HTTP/1.1 206 Part\r\n\(head)\(fields)".utf8) + rest, then: .keep)
        }

        private func whole(_ head: String) -> ScriptedServer.Action {
            let head = Array("HTTP/1.1 200 Whole\r\n\(head)Content-Length: \(content.count)\r\n\r\n".utf8)
            guard isInterrupting else { return .send(head + content, then: .keep) }
            return .send(head + content.prefix(content.count / 2), then: .stall(then: .close))
        }
    }

    // MARK: nginx

    @Test func `a cancelled download resumes where it ended`() async throws {
        let nginx = try await Nginx.shared()
        let content = Self.bytes(64 << 20, seed: 1)
        let source = nginx.root.appendingPathComponent("resumed-\(UInt64.random(in: 0 ... .max))")
        try Data(content).write(to: source)
        defer { try? FileManager.default.removeItem(at: source) }
        let url = "\(nginx.url)/\(source.lastPathComponent)"
        let resumeData = try await resumeData(of: url)

        let request = sessionManager.download(resumingWith: resumeData)
        let response = await once { request.responseData(completionHandler: $0) }
        #expect(response.value == Data(content))
        #expect(response.response?.statusCode == 206)
        #expect(request.progress.completedUnitCount == 64 << 20)
        #expect(request.progress.totalUnitCount == 64 << 20)
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `a file that changed on the server is downloaded completely`() async throws {
        let nginx = try await Nginx.shared()
        let source = nginx.root.appendingPathComponent("changed-\(UInt64.random(in: 0 ... .max))")
        try Data(Self.bytes(64 << 20, seed: 2)).write(to: source)
        defer { try? FileManager.default.removeItem(at: source) }
        let resumeData = try await resumeData(of: "\(nginx.url)/\(source.lastPathComponent)")
        let content = Self.bytes(1 << 20, seed: 3)
        try Data(content).write(to: source)

        let fileURL = place("changed")
        let response = await once {
            sessionManager.download(resumingWith: resumeData) { _, _ in (fileURL, []) }
                .responseData(completionHandler: $0)
        }
        #expect(response.value == Data(content))
        #expect(response.response?.statusCode == 200)
    }

    // MARK: The guides' sample

    /// The guides' class, for data instead of images.
    private final class Requestor: @unchecked Sendable {
        let url: String
        private(set) var resumeData: Data?
        private(set) var value: Data?

        init(url: String) {
            self.url = url
        }

        func fetch(_ sessionManager: SessionManager) async {
            let request: DownloadRequest

            if let resumeData = resumeData {
                request = sessionManager.download(resumingWith: resumeData)
            } else {
                request = sessionManager.download(url)
            }

            let response = await once { request.responseData(completionHandler: $0) }
            switch response.result {
            case .success(let data):
                self.value = data
                try? response.temporaryURL.map(FileManager.default.removeItem(at:))
            case .failure:
                self.resumeData = response.resumeData
            }
        }
    }

    @Test func `a truncated download is resumed by the next call`() async throws {
        let content = Self.bytes(200_000, seed: 4)
        let versions = Versions(content)
        let server = try ScriptedServer { versions.answer($0) }
        let requestor = Requestor(url: "\(server.url)/pig")
        server.release()
        await requestor.fetch(sessionManager)
        #expect(requestor.resumeData != nil)
        await requestor.fetch(sessionManager)
        #expect(requestor.value == Data(content))
        #expect(server.requests.flatMap { $0.values(of: "Range") } == ["bytes=100000-"])
        #expect(server.requests.flatMap { $0.values(of: "If-Range") } == ["\"v1\""])
    }

    @Test func `an entity tag without quotation marks is sent back unchanged`() async throws {
        let content = Self.bytes(200_000, seed: 11)
        let versions = Versions(content, etag: "v1")
        let server = try ScriptedServer { versions.answer($0) }
        let requestor = Requestor(url: "\(server.url)/pig")
        server.release()
        await requestor.fetch(sessionManager)
        await requestor.fetch(sessionManager)
        #expect(requestor.value == Data(content))
        #expect(server.requests.flatMap { $0.values(of: "If-Range") } == ["v1"])
    }

    @Test func `a retry resumes where the last attempt ended`() async throws {
        let content = Self.bytes(200_000, seed: 5)
        let versions = Versions(content)
        let server = try ScriptedServer { versions.answer($0) }
        server.release()
        sessionManager.retrier = Retrying { ($0.retryCount < 1, 0) }
        let fileURL = place("retried")
        let request = sessionManager.download("\(server.url)/pig") { _, _ in (fileURL, []) }
        let response = await once { request.validate().responseData(completionHandler: $0) }
        #expect(response.value == Data(content))
        #expect(server.requests.flatMap { $0.values(of: "Range") } == ["bytes=100000-"])
        #expect(request.progress.completedUnitCount == 200_000)
    }

    @Test func `a retry after a failed validation starts over`() async throws {
        struct Refused: Error {}
        let content = Self.bytes(80_000, seed: 6)
        let versions = Versions(content)
        let server = try ScriptedServer { versions.answer($0) }
        server.release()
        let first = await once {
            sessionManager.download("\(server.url)/pig").response(completionHandler: $0)
        }
        let resumeData = try #require(first.resumeData)
        versions.interrupts(false)
        sessionManager.retrier = Retrying { ($0.retryCount < 1, 0) }
        let (fileURL, checks) = (place("checked"), Recorder<Int>())
        let response = await once {
            sessionManager.download(resumingWith: resumeData) { _, _ in (fileURL, []) }
                .validate { _, response, _, _ in
                    checks.record(response.statusCode)
                    return checks.values.count == 1 ? .failure(Refused()) : .success
                }
                .responseData(completionHandler: $0)
        }
        #expect(response.value == Data(content))
        #expect(checks.values == [206, 200])
        #expect(server.requests.map { $0.values(of: "Range").count } == [0, 1, 0])
    }

    // MARK: Servers that do not support resuming

    /// Interrupts a download, replaces the file on a server that ignores `If-Range`, and resumes the download. The
    /// bytes of the old file are unusable, so the client must request the whole new file.
    private func expectWholeFile(_ content: [UInt8], replacing former: [UInt8]) async throws {
        let versions = Versions(former)
        let server = try ScriptedServer { versions.answer($0, ignoresCondition: true) }
        server.release()
        let first = await once {
            sessionManager.download("\(server.url)/pig").response(completionHandler: $0)
        }
        let resumeData = try #require(first.resumeData)
        versions.change(to: content, etag: "\"v2\"")
        versions.interrupts(false)
        let response = await once {
            sessionManager.download(resumingWith: resumeData).responseData(completionHandler: $0)
        }
        #expect(response.value == Data(content))
        #expect(server.requests.map { $0.values(of: "Range").count } == [0, 1, 0])
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `after a 416 the complete file is requested`() async throws {
        // The new file is shorter than the part of the old file that was received.
        try await expectWholeFile(Self.bytes(8_000, seed: 8), replacing: Self.bytes(200_000, seed: 7))
    }

    @Test func `a part of another version is not appended`() async throws {
        try await expectWholeFile(Self.bytes(160_000, seed: 10), replacing: Self.bytes(200_000, seed: 9))
    }

    @Test func `an error response keeps the partial file`() async throws {
        let content = Self.bytes(200_000, seed: 11)
        let versions = Versions(content)
        let server = try ScriptedServer { request in
            request.number == 2 ? .respond(status: 503, body: Array("sorry".utf8)) : versions.answer(request)
        }
        server.release()
        let first = await once {
            sessionManager.download("\(server.url)/pig").response(completionHandler: $0)
        }
        let second = await once {
            sessionManager.download(resumingWith: first.resumeData ?? Data())
                .validate().response(completionHandler: $0)
        }
        #expect((second.error as? AFError)?.responseCode == 503)
        try second.temporaryURL.map(FileManager.default.removeItem(at:))
        let third = await once {
            sessionManager.download(resumingWith: second.resumeData ?? Data())
                .responseData(completionHandler: $0)
        }
        #expect(third.value == Data(content))
        try third.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test(
        arguments: [
            { $0.cancel(producingResumeData: false) }, { $0.cancel(createResumeData: false) },
        ] as [@Sendable (DownloadRequest) -> DownloadRequest]
    )
    func `cancelling can discard the partial file`(
        cancel: @Sendable (DownloadRequest) -> DownloadRequest
    ) async throws {
        let versions = Versions(Self.bytes(200_000, seed: 12))
        let server = try ScriptedServer { versions.answer($0) }
        let progress = Recorder<Int64>()
        let request = sessionManager.download("\(server.url)/pig")
            .downloadProgress(queue: DispatchQueue(label: "progress")) {
                progress.record($0.completedUnitCount)
            }
        async let response = once { request.response(completionHandler: $0) }
        try await progress.waitForLast { $0 > 0 }
        _ = cancel(request)
        let ended = await response
        #expect(ended.resumeData == nil)
        #expect((ended.error as? URLError)?.code == .cancelled)
        let file = ended.temporaryURL?.path ?? ""
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func `invalid resume data is a typed error`() async throws {
        let response = await once {
            sessionManager.download(resumingWith: Data("<plist/>".utf8)).response(completionHandler: $0)
        }
        #expect((response.error as? AFError)?.isDownloadResumeError == true)
    }

    // MARK: Kept partial files

    @Test func `a kept partial file is resumed by another session, through a redirect`() async throws {
        let content = Self.bytes(200_000, seed: 13)
        let versions = Versions(content)
        let server = try ScriptedServer { request in
            guard request.target.hasPrefix("/latest") else { return versions.answer(request) }
            // The redirect's target has a different query each time.
            let location = "/pig?signature=\(request.number)"
            return .respond(status: 302, headers: [.init("Location", location)])
        }
        server.release()
        let (partial, fileURL) = (place("pig.partial"), place("pig"))
        do {
            let session = SessionManager(configuration: .ephemeral)
            let response = await once {
                session.download("\(server.url)/latest", keepingPartialFileAt: partial) { _, _ in
                    (fileURL, [])
                }
                .response(completionHandler: $0)
            }
            #expect((response.error as? URLError)?.code == .networkConnectionLost)
            #expect(try Data(contentsOf: partial).count == 100_000)
        }
        let session = SessionManager(configuration: .ephemeral)
        let request = session.download("\(server.url)/latest", keepingPartialFileAt: partial) { _, _ in
            (fileURL, [])
        }
        let response = await once { request.responseData(completionHandler: $0) }
        #expect(response.value == Data(content))
        #expect(request.progress.completedUnitCount == 200_000)
        #expect(server.requests.last?.values(of: "Range") == ["bytes=100000-"])
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        #expect(left == ["pig"])
    }

    @Test func `a kept partial file is written by one request at a time`() async throws {
        let versions = Versions(Self.bytes(200_000, seed: 14))
        let server = try ScriptedServer { versions.answer($0) }
        let partial = place("pig.partial")
        let first = sessionManager.download("\(server.url)/pig", keepingPartialFileAt: partial)
        await server.requests(atLeast: 1)
        let second = await once {
            sessionManager.download("\(server.url)/pig", keepingPartialFileAt: partial)
                .response(completionHandler: $0)
        }
        guard case AFError.downloadResumeFailed(.partialFileInUse)? = second.error else {
            Issue.record("\(String(describing: second.error))")
            return
        }
        first.cancel()
        _ = await first.response()
    }
}
