import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Uploading Data to a Server".
@Suite(.timeLimit(.minutes(5))) struct UploadingTests {
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func file(_ name: String, _ bytes: [UInt8]) throws -> URL {
        URL(fileURLWithPath: try scratch.write(bytes, to: name))
    }

    // MARK: Data, files, streams

    @Test func `data is uploaded without a content type`() async throws {
        let httpbin = try await HTTPBin.shared()
        let imageData = Data("pixels".utf8)
        let response = await once {
            ClientCore.upload(imageData, to: "\(httpbin.url)/post").responseJSON(completionHandler: $0)
        }
        #expect(object(response.value)["data"] as? String == "pixels")
        let headers = object(object(response.value)["headers"])
        #expect(headers["Content-Type"] == nil)
        #expect(headers["Content-Length"] as? String == "6")
    }

    @Test func `a file is uploaded unchanged`() async throws {
        let httpbin = try await HTTPBin.shared()
        let fileURL = try file("video.mov", Array("frames".utf8))
        let response = await once {
            ClientCore.upload(fileURL, to: "\(httpbin.url)/put", method: .put)
                .responseJSON(completionHandler: $0)
        }
        #expect(object(response.value)["data"] as? String == "frames")
    }

    @Test func `a large file is uploaded completely`() async throws {
        let nginx = try await Nginx.shared()
        var content = Data()
        while content.count < 20 << 20 {
            content += Data("frame \(content.count)".utf8) + Data(count: 10_007)
        }
        let fileURL = try file("video.mov", Array(content))
        let name = "upload-\(UInt64.random(in: 0 ... .max))"
        let response = await once {
            ClientCore.upload(fileURL, to: "\(nginx.url)/put/\(name)", method: .put)
                .validate().response(completionHandler: $0)
        }
        #expect(response.error == nil)
        #expect(response.response?.statusCode == 201)
        #expect(
            response.metrics?.transactionMetrics.last?.countOfRequestBodyBytesSent == Int64(content.count)
        )
        #expect(try Data(contentsOf: nginx.root.appendingPathComponent("put/\(name)")) == content)
    }

    @Test func `a stream is uploaded in chunks`() async throws {
        let server = try ScriptedServer { .respond("\($0.body.count)") }
        let stream = InputStream(data: Data(repeating: 7, count: 100_000))
        let response = await once {
            ClientCore.upload(stream, to: server.url).responseString(completionHandler: $0)
        }
        #expect(response.value == "100000")
        #expect(server.requests.flatMap { $0.values(of: "Transfer-Encoding") } == ["chunked"])
        #expect(server.requests.flatMap { $0.values(of: "Content-Length") }.isEmpty)
    }

    @Test func `an empty body has a length of 0`() async throws {
        let server = try ScriptedServer { .respond("\($0.body.count)") }
        let empty = try file("empty", [])
        let request = ClientCore.upload(empty, to: server.url)
        let response = await once { request.responseString(completionHandler: $0) }
        #expect(response.value == "0")
        #expect(try await ClientCore.upload(Data(), to: server.url).string == "0")
        #expect(server.requests.map { $0.values(of: "Content-Length") } == [["0"], ["0"]])
    }

    @Test func `data is uploaded with a custom URLRequest`() async throws {
        let httpbin = try await HTTPBin.shared()
        let urlRequest = try URLRequest(
            url: "\(httpbin.url)/post",
            method: .post,
            headers: ["Content-Type": "text/plain"]
        )
        let response = await once {
            ClientCore.upload(Data("text".utf8), with: urlRequest).responseJSON(completionHandler: $0)
        }
        #expect(object(response.value)["data"] as? String == "text")
    }

    @Test func `a missing file is an error before anything is sent`() async throws {
        let server = try ScriptedServer()
        let missing = URL(fileURLWithPath: scratch.file("gone"))
        let response = await once {
            ClientCore.upload(missing, to: server.url).response(completionHandler: $0)
        }
        guard case AFError.fileFailed(_, let url)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(url == missing)
        #expect(server.connectionCount == 0)
    }

    @Test func `a retry fails if the file was removed before it`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let sessionManager = SessionManager(configuration: .ephemeral)
        let fileURL = try file("short-lived", [1, 2, 3])
        sessionManager.retrier = Retrying { request in
            try? FileManager.default.removeItem(at: fileURL)
            return (request.retryCount < 1, 0)
        }
        let response = await once {
            sessionManager.upload(fileURL, to: server.url).validate().response(completionHandler: $0)
        }
        #expect((response.error as? AFError)?.url == fileURL)
        #expect(server.requests.count == 1)
    }

    // MARK: Forms

    @Test(arguments: [nil, 0] as [UInt64?])
    func `a form is uploaded from memory or from disk`(threshold: UInt64?) async throws {
        let httpbin = try await HTTPBin.shared()
        let unicornImageURL = try file("unicorn.png", Array("horn".utf8))
        let rainbowImageURL = try file("rainbow.jpg", Array("colours".utf8))
        let result = await once { (completion: @escaping @Sendable (EncodingResult) -> Void) in
            ClientCore.upload(
                multipartFormData: { multipartFormData in
                    multipartFormData.append(unicornImageURL, withName: "unicorn")
                    multipartFormData.append(rainbowImageURL, withName: "rainbow")
                    multipartFormData.append(Data("text".utf8), withName: "note")
                },
                usingThreshold: threshold ?? SessionManager.multipartFormDataEncodingMemoryThreshold,
                to: "\(httpbin.url)/post",
                encodingCompletion: completion
            )
        }
        guard case .success(let upload, let streamingFromDisk, let streamFileURL) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(streamingFromDisk == (threshold == 0))
        #expect((streamFileURL == nil) == (threshold == nil))
        let response = await once { upload.responseJSON(completionHandler: $0) }
        let files = object(object(response.value)["files"])
        #expect(files["unicorn"] as? String == "horn")
        #expect(files["rainbow"] as? String == "colours")
        #expect(object(object(response.value)["form"])["note"] as? String == "text")
        #expect(!FileManager.default.fileExists(atPath: streamFileURL?.path ?? "/none"))
    }

    private typealias EncodingResult = SessionManager.MultipartFormDataEncodingResult

    @Test func `the encoding completion is called on the main queue`() async throws {
        let server = try ScriptedServer()
        let isMain: Bool = await once { done in
            ClientCore.upload(
                multipartFormData: { $0.append(Data("text".utf8), withName: "note") },
                to: server.url,
                encodingCompletion: { _ in
                    dispatchPrecondition(condition: .onQueue(.main))
                    done(true)
                }
            )
        }
        #expect(isMain)
    }

    @Test func `a form on disk is sent again in a retry, and its file is removed at the end`() async throws {
        let server = try ScriptedServer { request in
            .stall(then: request.number < 3 ? .respond(status: 503) : .respond("taken"))
        }
        let sessionManager = SessionManager(configuration: .ephemeral)
        sessionManager.retrier = Retrying { ($0.retryCount < 2, 0) }
        let result = await once { (completion: @escaping @Sendable (EncodingResult) -> Void) in
            sessionManager.upload(
                multipartFormData: { $0.append(Data(repeating: 0x61, count: 50_000), withName: "note") },
                usingThreshold: 0,
                to: server.url,
                encodingCompletion: completion
            )
        }
        guard case .success(let upload, true, let streamFileURL?) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(FileManager.default.fileExists(atPath: streamFileURL.path))
        server.release()
        let response = await once { upload.validate().responseString(completionHandler: $0) }
        #expect(response.value == "taken")
        #expect(server.requests.count == 3)
        #expect(Set(server.requests.map(\.body)).count == 1)
        #expect(!FileManager.default.fileExists(atPath: streamFileURL.path))
    }

    @Test func `a form with a missing file fails to encode`() async throws {
        let server = try ScriptedServer()
        let missing = URL(fileURLWithPath: scratch.file("gone.png"))
        let result = await once { (completion: @escaping @Sendable (EncodingResult) -> Void) in
            ClientCore.upload(
                multipartFormData: { $0.append(missing, withName: "unicorn") },
                to: server.url,
                encodingCompletion: completion
            )
        }
        guard case .failure(let error) = result else {
            Issue.record("\(result)")
            return
        }
        #expect((error as? AFError)?.isMultipartEncodingError == true)
        #expect((error as? AFError)?.url == missing)
        let cause = String(describing: (error as? AFError)?.underlyingError)
        #expect(cause.contains("No such file"))
        guard
            case .multipartEncodingFailed(let reason)? = error as? AFError,
            case .bodyPartFileNotReachableWithError(let atURL, let underlying) = reason
        else {
            Issue.record("\(error)")
            return
        }
        #expect(atURL == missing)
        #expect("\(underlying)".contains("No such file"))
        #expect(server.connectionCount == 0)
    }

    @Test func `quotes and line breaks in names are escaped`() async throws {
        let httpbin = try await HTTPBin.shared()
        let result = await once { (completion: @escaping @Sendable (EncodingResult) -> Void) in
            ClientCore.upload(
                multipartFormData: {
                    $0.append(
                        Data("x".utf8),
                        withName: "a\"b",
                        fileName: "c\"\r\nd.txt",
                        mimeType: "text/plain"
                    )
                },
                to: "\(httpbin.url)/post",
                encodingCompletion: completion
            )
        }
        guard case .success(let upload, _, _) = result else {
            guard case .failure(AFError.multipartEncodingFailed(.bodyPartHeaderInvalid)) = result else {
                Issue.record("\(result)")
                return
            }
            return
        }
        let response = await once { upload.responseJSON(completionHandler: $0) }
        #expect(object(object(response.value)["files"]).count == 1)
        #expect(object(object(response.value)["form"]).isEmpty)
    }

    // MARK: Progress

    @Test func `one request reports progress in both directions on the main queue`() async throws {
        let httpbin = try await HTTPBin.shared()
        let fileURL = try file("video.mov", [UInt8](repeating: 0x61, count: 2_000_000))
        let (up, down) = (Recorder<Double>(), Recorder<Double>())
        let request = ClientCore.upload(fileURL, to: "\(httpbin.url)/post")
        let response = await once {
            request
                .uploadProgress { progress in
                    dispatchPrecondition(condition: .onQueue(.main))
                    up.record(progress.fractionCompleted)
                }
                .downloadProgress { progress in
                    dispatchPrecondition(condition: .onQueue(.main))
                    down.record(progress.fractionCompleted)
                }
                .responseJSON(completionHandler: $0)
        }
        #expect(response.result.isSuccess)
        try await up.waitForLast { $0 == 1 }
        try await down.waitForLast { $0 == 1 }
        #expect(up.values == up.values.sorted())
        #expect(request.uploadProgress.totalUnitCount == 2_000_000)
        #expect(request.progress.completedUnitCount > 2_000_000)
    }
}
