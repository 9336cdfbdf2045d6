import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Downloading Data to a File", up to resuming.
@Suite(.timeLimit(.minutes(5))) struct DownloadingTests {
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func place(_ name: String) -> URL {
        URL(fileURLWithPath: scratch.file(name))
    }

    @Test func `a download without a destination is in a temporary file`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.download("\(httpbin.url)/image/png").responseData(completionHandler: $0)
        }
        let data = try #require(response.result.value)
        #expect(data.prefix(4) == Data([0x89, 0x50, 0x4e, 0x47]))
        let file = try #require(response.temporaryURL)
        #expect(try Data(contentsOf: file) == data)
        #expect(response.destinationURL == nil)
        try FileManager.default.removeItem(at: file)
    }

    @Test func `a destination creates its directories and replaces an existing file`() async throws {
        let httpbin = try await HTTPBin.shared()
        let fileURL = place("new/er/pig.png")
        let destination: DownloadRequest.DownloadFileDestination = { _, _ in
            return (fileURL, [.removePreviousFile, .createIntermediateDirectories])
        }
        for _ in 0..<2 {
            let response = await once {
                ClientCore.download("\(httpbin.url)/image/png", to: destination).response(
                    completionHandler: $0
                )
            }
            #expect(response.error == nil)
            #expect(response.destinationURL?.path == fileURL.path)
            #expect(try Data(contentsOf: fileURL).count == 8090)
            let temporaryURL = try #require(response.temporaryURL)
            #expect(!FileManager.default.fileExists(atPath: temporaryURL.path))
        }
    }

    @Test func `a destination receives the temporary file and the response`() async throws {
        let httpbin = try await HTTPBin.shared()
        let seen = Recorder<String>()
        let fileURL = place("pig")
        let response = await once {
            ClientCore.download("\(httpbin.url)/image/png") { temporaryURL, response in
                seen.record("\(response.statusCode) \((try? Data(contentsOf: temporaryURL).count) ?? -1)")
                return (fileURL, [])
            }
            .response(completionHandler: $0)
        }
        #expect(response.error == nil)
        #expect(seen.values == ["200 8090"])
    }

    @Test func `without the options an existing file and a missing directory are errors`() async throws {
        let httpbin = try await HTTPBin.shared()
        try scratch.write(Array("old".utf8), to: "occupied")
        for name in ["occupied", "missing/file"] {
            let fileURL = place(name)
            let response = await once {
                ClientCore.download("\(httpbin.url)/bytes/10") { _, _ in (fileURL, []) }
                    .responseData(completionHandler: $0)
            }
            guard case AFError.downloadedFileMoveFailed(_, let source, let destination)? = response.error
            else {
                Issue.record("\(response.result)")
                continue
            }
            #expect(destination == fileURL)
            #expect(response.destinationURL == fileURL)
            #expect(try Data(contentsOf: source).count == 10)
            try FileManager.default.removeItem(at: source)
        }
        #expect(try String(contentsOf: place("occupied"), encoding: .utf8) == "old")
    }

    @Test func `an unwritable destination is an error`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.download("\(httpbin.url)/bytes/10") { _, _ in
                (URL(fileURLWithPath: "/proc/netwatch/file"), [.createIntermediateDirectories])
            }
            .response(completionHandler: $0)
        }
        #expect((response.error as? AFError)?.isDownloadedFileMoveError == true)
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `without validation an error's body is moved to the destination`() async throws {
        let httpbin = try await HTTPBin.shared()
        let fileURL = place("teapot")
        let response = await once {
            ClientCore.download("\(httpbin.url)/status/418") { _, _ in (fileURL, []) }
                .responseString(completionHandler: $0)
        }
        #expect(response.response?.statusCode == 418)
        #expect(response.value?.contains("teapot") == true)
    }

    @Test func `the suggested destination uses the server's file name`() async throws {
        let server = try ScriptedServer { _ in
            let header = ScriptedServer.Header("Content-Disposition", #"attachment; filename="../pig.png""#)
            return .respond(status: 200, headers: [header], body: Array("oink".utf8))
        }
        let suggested = DownloadRequest.suggestedDownloadDestination(for: .documentDirectory)
        let (name, directory) = (Recorder<String>(), place("."))
        let response = await once {
            ClientCore.download(server.url) { temporaryURL, response in
                // Does not use the suggested directory, which is in the user's home, where tests must not leave files.
                let url = suggested(temporaryURL, response).destinationURL
                name.record(url.path)
                return (directory.appendingPathComponent(url.lastPathComponent), [])
            }
            .responseString(completionHandler: $0)
        }
        #expect(response.value == "oink")
        #expect(response.destinationURL?.lastPathComponent == "pig.png")
        let documents = FileManager.default.urls(for: .documentDirectory, in: .userDomainMask)[0]
        #expect(name.values == [documents.appendingPathComponent("pig.png").path])
    }

    @Test func `parameters, headers and a custom request are sent`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.download(
                "\(httpbin.url)/post",
                method: .post,
                parameters: ["foo": "bar"],
                encoding: JSONEncoding.default,
                headers: ["X-Here": "there"]
            )
            .responseJSON(completionHandler: $0)
        }
        #expect(object(object(response.value)["json"])["foo"] as? String == "bar")
        #expect(object(object(response.value)["headers"])["X-Here"] as? String == "there")
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
        let url = try #require(URL(string: "\(httpbin.url)/bytes/3"))
        #expect(try await ClientCore.download(URLRequest(url: url)).data.count == 3)
    }

    // MARK: Progress

    @Test(arguments: [false, true])
    func `progress is reported on its queue up to the total`(isOnMain: Bool) async throws {
        let httpbin = try await HTTPBin.shared()
        let utilityQueue = DispatchQueue(label: "utility")
        let fractions = Recorder<Double>()
        let response = await once {
            ClientCore.download("\(httpbin.url)/bytes/100000")
                .downloadProgress(queue: isOnMain ? .main : utilityQueue) { progress in
                    dispatchPrecondition(condition: .onQueue(isOnMain ? .main : utilityQueue))
                    fractions.record(progress.fractionCompleted)
                }
                .responseData(completionHandler: $0)
        }
        #expect(response.value?.count == 100_000)
        try await fractions.waitForLast { $0 == 1 }
        #expect(fractions.values == fractions.values.sorted())
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `without a length the total is -1`() async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.download("\(httpbin.url)/stream/10")
        let response = await once { request.response(completionHandler: $0) }
        #expect(response.error == nil)
        #expect(request.progress.totalUnitCount == -1)
        #expect(request.progress.completedUnitCount > 0)
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `only the last progress closure is called`() async throws {
        let httpbin = try await HTTPBin.shared()
        let calls = Recorder<Int>()
        let queue = DispatchQueue(label: "progress")
        let request = ClientCore.download("\(httpbin.url)/bytes/1000")
            .downloadProgress(queue: queue) { _ in calls.record(1) }
            .downloadProgress(queue: queue) { _ in calls.record(2) }
        let response = await once { request.response(completionHandler: $0) }
        try await calls.wait { !$0.isEmpty }
        #expect(!calls.values.contains(1))
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `progress counts bytes on the wire, so that a compressed body reaches its total`() async throws
    {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.download("\(httpbin.url)/gzip")
        let response = await once { request.responseJSON(completionHandler: $0) }
        #expect(object(response.value)["gzipped"] as? Bool == true)
        #expect(request.progress.totalUnitCount > 0)
        #expect(request.progress.fractionCompleted == 1)
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    // MARK: Handlers

    @Test func `the response handlers read the file`() async throws {
        let httpbin = try await HTTPBin.shared()
        let plist = try PropertyListSerialization.data(
            fromPropertyList: ["foo": "bar"],
            format: .xml,
            options: 0
        )
        let server = try ScriptedServer { _ in .respond(status: 200, body: Array(plist)) }
        let json = await once {
            ClientCore.download("\(httpbin.url)/get").responseJSON(completionHandler: $0)
        }
        #expect(object(json.value)["url"] as? String == "\(httpbin.url)/get")
        let text = await once {
            ClientCore.download("\(httpbin.url)/robots.txt").responseString(completionHandler: $0)
        }
        #expect(text.value?.contains("Disallow") == true)
        let list = await once {
            ClientCore.download(server.url).responsePropertyList(completionHandler: $0)
        }
        #expect(object(list.value)["foo"] as? String == "bar")
        struct UUIDAnswer: Decodable, Sendable { let uuid: UUID }
        let decoded = await once {
            ClientCore.download("\(httpbin.url)/uuid")
                .responseDecodable(of: UUIDAnswer.self, completionHandler: $0)
        }
        #expect(decoded.result.isSuccess)
        for file in [json.temporaryURL, text.temporaryURL, list.temporaryURL, decoded.temporaryURL] {
            try file.map(FileManager.default.removeItem(at:))
        }
    }

    @Test func `several handlers read the same file, also at its destination`() async throws {
        let httpbin = try await HTTPBin.shared()
        let fileURL = place("json")
        let lengths = Recorder<Int>()
        let json = await once {
            ClientCore.download("\(httpbin.url)/get") { _, _ in (fileURL, []) }
                .responseData { lengths.record($0.value?.count ?? -1) }
                .responseString { lengths.record($0.value?.utf8.count ?? -1) }
                .responseJSON(completionHandler: $0)
        }
        #expect(json.result.isSuccess)
        let size = try Data(contentsOf: fileURL).count
        #expect(lengths.values == [size, size])
    }

    @Test func `a missing file is the handler's error`() async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.download("\(httpbin.url)/bytes/10")
        let response = await once { request.response(completionHandler: $0) }
        let file = try #require(response.temporaryURL)
        try FileManager.default.removeItem(at: file)
        let read = await once { request.responseData(completionHandler: $0) }
        guard case AFError.responseSerializationFailed(.inputFileReadFailed(let url))? = read.error else {
            Issue.record("\(read.result)")
            return
        }
        #expect(url == file)
    }

    @Test func `an empty response creates an empty file`() async throws {
        let server = try ScriptedServer()
        let fileURL = place("empty")
        let response = await once {
            ClientCore.download(server.url) { _, _ in (fileURL, []) }.responseData(completionHandler: $0)
        }
        #expect(response.value == Data())
        #expect(FileManager.default.fileExists(atPath: fileURL.path))
    }
}
