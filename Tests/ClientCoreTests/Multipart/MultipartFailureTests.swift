internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Files and streams that cannot be parts of a form, or that change before the form is encoded.
@Suite(.timeLimit(.minutes(5))) struct MultipartFailureTests {
    private let scratch: ScratchDirectory
    private let form = MultipartFormData()

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func url(_ name: String) -> URL { URL(fileURLWithPath: scratch.file(name)) }

    /// Encodes the form in memory and into a file, and returns the failure, which must be the same for both. The file
    /// must not exist afterwards.
    private func failure() throws -> AFError.MultipartEncodingFailureReason {
        let output = url("output")
        let inMemory = try #require(multipartFailureReason { try form.encode() })
        let onDisk = multipartFailureReason {
            try form.writeEncodedData(to: output)
            return Data()
        }
        #expect(onDisk.map { "\($0)" } == "\(inMemory)")
        #expect(!FileManager.default.fileExists(atPath: output.path))
        return inMemory
    }

    // MARK: Adding a file

    @Test(arguments: ["https://example.com/a.png", "file:", "file:///tmp/%FF"])
    func `a part's URL must be a file URL`(text: String) throws {
        let bad = try #require(URL(string: text))
        form.append(bad, withName: "a")
        guard case .bodyPartURLInvalid(bad) = try failure() else {
            Issue.record("not refused")
            return
        }
    }

    @Test(arguments: [("missing", ENOENT), ("file/child", ENOTDIR), ("a%00b", ENOENT)])
    func `a missing file is reported as not reachable, with the system's error`(
        path: String,
        errno: CInt
    ) throws {
        try scratch.makeFile("file")
        let bad = url(path)
        form.append(bad, withName: "a")
        let reason = try failure()
        guard case .bodyPartFileNotReachableWithError(bad, let error) = reason else {
            Issue.record("not refused")
            return
        }
        #expect((error as? SystemError)?.errno == errno)
        #expect(AFError.multipartEncodingFailed(reason: reason).underlyingError is SystemError)
    }

    @Test func `an unreadable file is reported as not reachable`() throws {
        let bad = try scratch.makeFile("secret")
        chmod(bad.path, 0)
        asNobody { form.append(bad, withName: "a") }
        guard case .bodyPartFileNotReachableWithError(bad, _) = try failure() else {
            Issue.record("not refused")
            return
        }
    }

    @Test func `the system's error is kept if a file cannot be examined`() throws {
        let bad = url("loop")
        symlink(bad.path, bad.path)
        form.append(bad, withName: "a")
        guard case .bodyPartFileNotReachableWithError(bad, let error) = try failure() else {
            Issue.record("not refused")
            return
        }
        #expect((error as? SystemError)?.errno == ELOOP)
    }

    @Test func `a directory cannot be a part`() throws {
        let bad = URL(fileURLWithPath: scratch.path)
        form.append(bad, withName: "a")
        guard case .bodyPartFileIsDirectory(bad) = try failure() else {
            Issue.record("not refused")
            return
        }
    }

    @Test(arguments: ["fifo", "/dev/null"])
    func `a pipe or a device is refused as a part without waiting`(path: String) throws {
        mkfifo(scratch.file("fifo"), 0o600)
        let bad = path.hasPrefix("/") ? URL(fileURLWithPath: path) : url(path)
        form.append(bad, withName: "a")
        guard case .bodyPartFileSizeNotAvailable(bad) = try failure() else {
            Issue.record("not refused")
            return
        }
    }

    @Test func `a file without a file name is refused`() throws {
        let file = try scratch.makeFile("a")
        form.append(file, withName: "a", fileName: "", mimeType: "a/b")
        guard case .bodyPartFilenameInvalid(file) = try failure() else {
            Issue.record("not refused")
            return
        }
    }

    @Test func `the first error is kept`() throws {
        form.append(url("first"), withName: "a")
        form.append(url("second"), withName: "b\0")
        form.append(Data("x".utf8), withName: "c")
        guard case .bodyPartFileNotReachableWithError(url("first"), _) = try failure() else {
            Issue.record("another error")
            return
        }
        #expect(form.contentLength == 0)
    }

    // MARK: Reading a file

    @Test func `a file removed before encoding is reported as not reachable`() throws {
        let file = try scratch.makeFile("a")
        form.append(file, withName: "a")
        unlink(file.path)
        guard case .bodyPartFileNotReachableWithError(file, _) = try failure() else {
            Issue.record("not noticed")
            return
        }
    }

    @Test func `a file replaced by a pipe before encoding is refused without waiting`() throws {
        let file = try scratch.makeFile("a")
        form.append(file, withName: "a")
        unlink(file.path)
        mkfifo(file.path, 0o600)
        guard case .bodyPartFileSizeNotAvailable(file) = try failure() else {
            Issue.record("not noticed")
            return
        }
    }

    @Test(arguments: ["conten", "", "contents", "content" + String(repeating: "x", count: 100_000)])
    func `a file whose length changes before encoding is refused`(content: String) throws {
        let file = try scratch.makeFile("a")
        form.append(file, withName: "a")
        try scratch.makeFile("a", content)
        let error = try unexpectedLength()
        #expect(error.part == file.path)
        #expect(error.bytesExpected == 7)
        #expect(error.bytesRead == content.utf8.count)
    }

    /// The kernel reports a size of 0 for files in /proc. This one never changes, so that both attempts read equally
    /// much.
    @Test func `a file that returns more bytes than its size is refused`() throws {
        form.append(URL(fileURLWithPath: "/proc/version"), withName: "a")
        let error = try unexpectedLength()
        #expect(error.bytesExpected == 0)
        #expect(error.bytesRead > 0)
    }

    /// A stream can be read only once, so each case encodes the form either in memory or into a file.
    @Test(arguments: [5, 7, 0, 70_000, UInt64.max], [false, true])
    func `a stream with more or fewer bytes than announced is refused`(
        length: UInt64,
        isOnDisk: Bool
    ) throws {
        form.append(InputStream(data: Data("stream".utf8)), withLength: length, headers: [:])
        let error = #expect(throws: AFError.self) { try encodeOnce(onDisk: isOnDisk) }
        let length = try #require(error?.underlyingError as? AFError.UnexpectedInputStreamLength)
        #expect(length.bytesRead == 6)
        #expect(length.part == "stream")
        #expect(!FileManager.default.fileExists(atPath: url("output").path))
    }

    @Test func `a failing stream is an error`() throws {
        let stream = try #require(InputStream(fileAtPath: url("missing").path))
        form.append(stream, withLength: 1, name: "a", fileName: "b", mimeType: "c/d")
        let error = #expect(throws: AFError.self) { try encodeOnce(onDisk: true) }
        #expect(error?.underlyingError is SystemError)
        #expect(!FileManager.default.fileExists(atPath: url("output").path))
    }

    @Test(arguments: [-1, Int.max, Int.min])
    func `a custom stream that reports a wrong count is an error`(result: Int) throws {
        form.append(MisreportingStream(result), withLength: 1, name: "a", fileName: "b", mimeType: "c/d")
        let error = #expect(throws: AFError.self) { try form.encode() }
        #expect(error?.underlyingError is SystemError)
    }

    @Test func `an open stream is read from its current position`() throws {
        let stream = InputStream(data: Data("abc".utf8))
        stream.open()
        var byte: UInt8 = 0
        let count = stream.read(&byte, maxLength: 1)
        #expect(count == 1)
        form.append(stream, withLength: 2, headers: [:])
        #expect(String(decoding: try form.encode(), as: UTF8.self).contains("\r\n\r\nbc\r\n"))
    }

    // MARK: The output file

    @Test func `an existing output file is not overwritten`() throws {
        let output = try scratch.makeFile("output", "old")
        let dangling = url("dangling")
        symlink(scratch.file("nowhere"), dangling.path)
        for bad in [output, dangling] {
            let reason = multipartFailureReason {
                try form.writeEncodedData(to: bad)
                return Data()
            }
            guard case .outputStreamFileAlreadyExists(bad) = reason else {
                Issue.record("not refused")
                return
            }
        }
        #expect(try String(contentsOf: output, encoding: .utf8) == "old")
        #expect(!FileManager.default.fileExists(atPath: scratch.file("nowhere")))
    }

    @Test func `the error names an output path that cannot be created`() throws {
        let bad = url("missing/output")
        let reason = multipartFailureReason {
            try form.writeEncodedData(to: bad)
            return Data()
        }
        guard case .outputStreamCreationFailed(bad) = reason else {
            Issue.record("not refused")
            return
        }
    }

    @Test func `the output URL must be a file URL`() throws {
        let bad = try #require(URL(string: "https://example.com/a"))
        let reason = multipartFailureReason {
            try form.writeEncodedData(to: bad)
            return Data()
        }
        guard case .outputStreamURLInvalid(bad) = reason else {
            Issue.record("not refused")
            return
        }
    }

    @Test(.enabled(if: geteuid() == 0, "mounting a small file system needs root"))
    func `a full disk is an error and leaves no file`() throws {
        let output = url("output")
        let outcome = try onSmallDisk(at: scratch.path) {
            let form = MultipartFormData()
            form.append(Data(count: 1_000_000), withName: "a")
            let error = #expect(throws: AFError.self) { try form.writeEncodedData(to: output) }
            return (error, FileManager.default.fileExists(atPath: output.path))
        }
        guard case .multipartEncodingFailed(.outputStreamWriteFailed(let error)) = outcome.0 else {
            Issue.record("\(outcome)")
            return
        }
        #expect((error as? SystemError)?.errno == ENOSPC)
        #expect(!outcome.1)
    }

    // MARK: Helpers

    private func encodeOnce(onDisk: Bool) throws {
        if onDisk { try form.writeEncodedData(to: url("output")) } else { _ = try form.encode() }
    }

    private func unexpectedLength() throws -> AFError.UnexpectedInputStreamLength {
        guard case .inputStreamReadFailed(let error) = try failure() else {
            throw CancellationError()
        }
        return try #require(error as? AFError.UnexpectedInputStreamLength)
    }
}
