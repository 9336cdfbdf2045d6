internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The partial file of a download.
@Suite(.timeLimit(.minutes(5))) struct PartialDownloadTests {
    private let directory: ScratchDirectory
    private let target: URL
    private let url = get().url!

    init() throws {
        directory = try ScratchDirectory()
        target = URL(fileURLWithPath: directory.file("part"))
    }

    private var recordPath: String { directory.file("part.resume") }

    private func bytes(_ count: Int, from first: Int = 0) -> [UInt8] {
        (first..<first + count).map { UInt8($0 % 251) }
    }

    private func contents(_ path: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path).map { Array($0) }
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    /// Simulates a power failure after 60 of 100 bytes, 50 of which have been synced.
    private func powerCut() throws {
        let download = try PartialDownload.kept(at: target, for: url, syncInterval: 40)
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(50))
        try download.append(bytes(10, from: 50))
        try restart(target)
    }

    /// Creates a download of 100 bytes that was abandoned after 60 bytes.
    private func abandoned(tag: String = "\"v1\"") throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100, tag: tag))
        try download.append(bytes(60))
    }

    @Test(arguments: [false, true])
    func `a file whose name was removed is still moved to its destination`(replaces: Bool) throws {
        let download = try PartialDownload.temporary()
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(100))
        try download.finish(expecting: 100)
        try FileManager.default.removeItem(at: download.url)
        try download.move(to: target, options: replaces ? [.removePreviousFile] : [])
        #expect(contents(target.path) == bytes(100))
    }

    @Test func `a directory removed before its file is created is created again`() throws {
        var (directories, tries) = ([String](), 0)
        let made = try TemporaryFiles.newFile(in: directory.path) { path throws(PartialFile.Failure) in
            directories.append((path as NSString).deletingLastPathComponent)
            tries += 1
            if tries < 4 { rmdir(directories[tries - 1]) }
            return try PartialFile.creating(path)
        }
        #expect(tries == 4)
        #expect(Set(directories).count == 1)
        let path = made.path
        #expect(access(path, F_OK) == 0)
    }

    /// Creates a file with the name of a temporary file in the subdirectory that ``TemporaryFiles`` uses.
    private func temporaryFile(_ digit: Character, mode: mode_t) throws -> String {
        let subdirectory = directory.file("netwatch-downloads-\(geteuid())")
        mkdir(subdirectory, 0o700)
        let path = "\(subdirectory)/netwatch-\(String(repeating: digit, count: 32)).partial"
        try #require(FileManager.default.createFile(atPath: path, contents: Data(bytes(10))))
        chmod(path, mode)
        return path
    }

    @Test func `the files of killed processes are removed, and no others`() throws {
        let abandoned = try temporaryFile("a", mode: 0o600 | S_ISVTX)
        let received = try temporaryFile("b", mode: 0o600)
        let used = try temporaryFile("c", mode: 0o600 | S_ISVTX)
        let user = try PartialFile.opening(used)
        let other = (abandoned as NSString).deletingLastPathComponent + "/other"
        try #require(FileManager.default.createFile(atPath: other, contents: nil))
        chmod(other, 0o600 | S_ISVTX)
        let new = try TemporaryFiles.newFile(in: directory.path)
        #expect(contents(abandoned) == nil)
        for path in [received, used, other, new.path] { #expect(access(path, F_OK) == 0) }
        user.unlock()
    }

    @Test func `a temporary file is not abandoned once the program can know it`() throws {
        func isPrivate(_ download: PartialDownload) throws -> Bool {
            var status = stat()
            try #require(lstat(download.url.path, &status) == 0)
            return status.st_mode & S_ISVTX != 0
        }
        let partial = try PartialDownload.temporary()
        try partial.startOver(get(), wholeHead(100))
        try partial.append(bytes(60))
        #expect(try isPrivate(partial))
        _ = try #require(partial.resumeRecord())
        #expect(try !isPrivate(partial))
        try partial.startOver(get(), wholeHead(100, tag: "\"v2\""))
        #expect(try isPrivate(partial))
        try partial.append(bytes(100))
        try partial.leaveInPlace()
        #expect(try !isPrivate(partial))
        try Directory.removeFile(partial.url.path)
    }

    @Test func `a temporary file is private and is deleted with its owner`() throws {
        var download: PartialDownload? = try PartialDownload.temporary()
        let path = try #require(download?.url.path)
        #expect(mode(path) == 0o600)
        #expect(mode((path as NSString).deletingLastPathComponent) == 0o700)
        download = nil
        #expect(access(path, F_OK) != 0)
    }

    @Test func `a temporary file with a resume record is kept and can be continued`() throws {
        var download: PartialDownload? = try PartialDownload.temporary()
        try download?.startOver(get(), wholeHead(100))
        try download?.append(bytes(60))
        let data = try #require(download?.resumeRecord()?.data)
        download = nil

        let resumed = try PartialDownload.resuming(try ResumeRecord(data: data))
        #expect(resumed.resumption?.offset == 60)
        try resumed.continueWriting(from: 60, total: 100)
        try resumed.append(bytes(40, from: 60))
        try resumed.finish(expecting: 100)
        #expect(contents(resumed.url.path) == bytes(100))
        try resumed.discard()
        #expect(access(resumed.url.path, F_OK) != 0)
    }

    @Test func `a temporary file that cannot be continued has no record`() throws {
        let download = try PartialDownload.temporary()
        try download.startOver(get(), transferHead(200))
        try download.append(bytes(60))
        #expect(download.resumeRecord() == nil)
    }

    @Test func `starting over uses a new temporary file, so that an old record does not match`() throws {
        let download = try PartialDownload.temporary()
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(60))
        let old = try #require(download.resumeRecord())
        try download.startOver(get(), wholeHead(100, tag: "\"v2\""))
        #expect(throws: AFError.self) { try PartialDownload.resuming(old) }
        #expect(access(old.partialFile, F_OK) != 0)
        #expect(download.received == 0)
    }

    @Test func `a kept file is continued at its end`() throws {
        try abandoned()
        #expect(mode(target.path) == 0o600)
        #expect(mode(recordPath) == 0o600)
        let download = try PartialDownload.kept(at: target, for: url)
        #expect(download.resumption?.offset == 60)
        #expect(download.resumption?.total == 100)
        try download.continueWriting(from: 60, total: 100)
        try download.append(bytes(40, from: 60))
        try download.finish(expecting: nil)
        try download.leaveInPlace()
        #expect(contents(target.path) == bytes(100))
        #expect(access(recordPath, F_OK) != 0)
    }

    @Test func `a kept file is continued from resume data unless it was started over`() throws {
        try abandoned()
        let old = try #require(ResumeRecordFile(of: target.path).read())
        #expect(try PartialDownload.resuming(old).resumption?.offset == 60)
        try abandoned(tag: "\"v2\"")
        let error = afError { _ = try PartialDownload.resuming(old) }
        guard case .downloadResumeFailed(.resumeDataInvalid(let why))? = error else {
            throw Unexpected(outcome: "\(String(describing: error))")
        }
        #expect(why.contains("belongs to another URL or version"))
    }

    @Test func `only one request writes to a file`() throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(60))
        let record = try #require(download.resumeRecord())
        #expect(isInUse { _ = try PartialDownload.kept(at: target, for: url) })
        #expect(isInUse { _ = try PartialDownload.resuming(record) })
        try download.leaveInPlace()
        #expect(throws: Never.self) { try PartialDownload.kept(at: target, for: url) }
    }

    @Test func `a lock is released with its owner, even if a child process has a copy of the descriptor`()
        throws
    {
        var download: PartialDownload? = try PartialDownload.kept(at: target, for: url)
        let path = try #require(download?.url.path)
        let descriptor = try #require(openDescriptor(of: path))
        let copy = dup(descriptor)
        defer { close(copy) }
        download = nil
        #expect(throws: Never.self) { try PartialDownload.kept(at: target, for: url) }
    }

    private func openDescriptor(of path: String) -> CInt? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { CInt($0) }.first {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
        }
    }

    private func isInUse(_ body: () throws -> Void) -> Bool {
        if case .downloadResumeFailed(.partialFileInUse(target))? = afError(body) { true } else { false }
    }

    @Test func `a power failure loses only bytes that were not synced`() throws {
        try powerCut()
        let resumed = try PartialDownload.kept(at: target, for: url)
        #expect(resumed.resumption?.offset == 50)
        try resumed.continueWriting(from: 50, total: 100)
        #expect(contents(target.path) == bytes(50))
        // The record now belongs to the current boot.
        #expect(ResumeRecordFile(of: target.path).read()?.usable(of: 50) == 50)
    }

    @Test(arguments: ["missing", "garbage", "cut", "other URL", "short file", "long file", "symlink", "huge"])
    func `a kept file without a matching record starts over`(_ fault: String) throws {
        try abandoned()
        let record = try #require(FileManager.default.contents(atPath: recordPath))
        switch fault {
        case "missing": try FileManager.default.removeItem(atPath: recordPath)
        case "garbage": try Data("{".utf8).write(to: URL(fileURLWithPath: recordPath))
        case "cut": try record.dropLast(3).write(to: URL(fileURLWithPath: recordPath))
        case "short file":
            let download = try PartialDownload.kept(at: target, for: url)
            try download.continueWriting(from: 60, total: 100)
            truncate(target.path, 59)
        case "long file": truncate(target.path, 101)
        case "symlink":
            rename(recordPath, directory.file("elsewhere"))
            symlink(directory.file("elsewhere"), recordPath)
        case "huge":
            let blanks = Data(repeating: 0x20, count: ResumeRecord.maximumBytes)
            try (record + blanks).write(to: URL(fileURLWithPath: recordPath))
        default: break
        }
        let asked = fault == "other URL" ? URL(string: "http://example.com/other")! : url
        let download = try PartialDownload.kept(at: target, for: asked)
        #expect(download.resumption == nil)
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(100))
        try download.finish(expecting: 100)
        try download.leaveInPlace()
        #expect(contents(target.path) == bytes(100))
    }

    @Test func `a file with a second hard link is not written to`() throws {
        // Simulates a process killed between link(2) and unlink(2).
        try abandoned()
        link(target.path, directory.file("finished"))
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100))
        #expect(contents(directory.file("finished")) == bytes(60))
    }

    @Test func `a path that is not a regular file is refused`() throws {
        symlink(directory.file("elsewhere"), target.path)
        #expect(systemErrno { _ = try PartialDownload.kept(at: target, for: url) } == ELOOP)
        let pipe = URL(fileURLWithPath: directory.file("pipe"))
        mkfifo(pipe.path, 0o600)
        #expect(systemErrno { _ = try PartialDownload.kept(at: pipe, for: url) } == EPERM)
        let missing = URL(fileURLWithPath: directory.file("no/part"))
        #expect(systemErrno { _ = try PartialDownload.kept(at: missing, for: url) } == ENOENT)
        let itself = URL(fileURLWithPath: directory.path)
        #expect(systemErrno { _ = try PartialDownload.kept(at: itself, for: url) } == EISDIR)
        #expect(systemErrno { _ = try PartialDownload.kept(at: url, for: url) } == EINVAL)
        let nul = URL(string: "file://\(directory.path)/a%00b")!
        #expect(systemErrno { _ = try PartialDownload.kept(at: nul, for: url) } == EINVAL)
    }

    private func systemErrno(_ body: () throws -> Void) -> Int32? {
        (afError(body)?.underlyingError as? SystemError)?.errno
    }

    @Test func `a record cannot open a file that no download created`() throws {
        let precious = directory.file("precious")
        try Data(bytes(100)).write(to: URL(fileURLWithPath: precious))
        let record = ResumeRecord.sample(partialFile: precious)
        guard
            case .downloadResumeFailed(.resumeDataInvalid(let why))? = afError({
                _ = try PartialDownload.resuming(record)
            })
        else { throw Unexpected(outcome: "no refusal") }
        #expect(why.contains(precious))
        #expect(contents(precious) == bytes(100))
    }

    @Test func `a record whose file is missing, too short or a link is refused`() throws {
        let record = try abandonedTemporary()
        let path = record.partialFile
        defer { unlink(path) }
        truncate(path, 59)
        #expect(isMissing { _ = try PartialDownload.resuming(record) })
        rename(path, directory.file("moved"))
        #expect(isMissing { _ = try PartialDownload.resuming(record) })
        symlink(directory.file("moved"), path)
        #expect(systemErrno { _ = try PartialDownload.resuming(record) } == ELOOP)
    }

    private func abandonedTemporary() throws -> ResumeRecord {
        let download = try PartialDownload.temporary()
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(60))
        return try #require(download.resumeRecord())
    }

    private func isMissing(_ body: () throws -> Void) -> Bool {
        if case .downloadResumeFailed(.partialFileMissing)? = afError(body) { true } else { false }
    }

    @Test func `a file that is too short is an error and can be continued`() throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(60))
        for length: Int64? in [100, nil] {
            let error = #expect(throws: URLError.self) { try download.finish(expecting: length) }
            #expect(error?.code == .networkConnectionLost)
            #expect(error?.localizedDescription == "received only 60 of 100 bytes")
        }
        #expect(download.resumeRecord()?.received == 60)
    }

    @Test func `a moved or discarded file is not written to again`() throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100))
        try download.discard()
        #expect(!FileManager.default.fileExists(atPath: target.path))
        #expect(!FileManager.default.fileExists(atPath: recordPath))
        #expect(systemErrno { try download.append([1]) } == EBADF)
    }

    @Test func `a system error names the file`() throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try FileManager.default.removeItem(atPath: directory.path)
        let error = afError { try download.startOver(get(), wholeHead(100)) }
        guard case .fileFailed(let underlying, let url)? = error else {
            throw Unexpected(outcome: "no error")
        }
        #expect(url.path == target.path)
        #expect((underlying as? SystemError)?.errno == ENOENT)
    }

    @Test func `nothing is written before the response, and never after a gap`() throws {
        try abandoned()
        let download = try PartialDownload.kept(at: target, for: url)
        #expect(systemErrno { try download.append([1]) } == EINVAL)
        #expect(systemErrno { try download.continueWriting(from: 61, total: 100) } == EINVAL)
        #expect(contents(target.path) == bytes(60))
    }

    @Test func `cancelling before the response does not validate bytes from before a power failure`() throws {
        try powerCut()
        var download: PartialDownload? = try PartialDownload.kept(at: target, for: url)
        #expect(download?.resumeRecord()?.received == 50)
        download = nil
        #expect(try PartialDownload.kept(at: target, for: url).resumption?.offset == 50)
    }

    @Test func `a file that is too long is an error and is not continued`() throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(101))
        guard
            case .downloadResumeFailed(.rangeResponseInvalid)? = afError({
                try download.finish(expecting: nil)
            }
            )
        else { throw Unexpected(outcome: "no error") }
        #expect(download.resumeRecord() == nil)
    }

    @Test func `moving a finished file removes its record`() throws {
        try abandoned()
        let download = try PartialDownload.kept(at: target, for: url)
        try download.continueWriting(from: 60, total: 100)
        try download.append(bytes(40, from: 60))
        try download.finish(expecting: 100)
        let destination = URL(fileURLWithPath: directory.file("file"))
        try download.move(to: destination, options: [])
        #expect(contents(destination.path) == bytes(100))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["file"])
    }

    @Test func `a finished file that cannot be moved stays with its record`() throws {
        let download = try PartialDownload.kept(at: target, for: url)
        try download.startOver(get(), wholeHead(100))
        try download.append(bytes(100))
        try download.finish(expecting: 100)
        let occupied = URL(fileURLWithPath: directory.file("file"))
        try Data("old".utf8).write(to: occupied)
        let error = afError { try download.move(to: occupied, options: []) }
        guard case .downloadedFileMoveFailed(let underlying, let source, let destination)? = error else {
            throw Unexpected(outcome: "\(String(describing: error))")
        }
        #expect((underlying as? SystemError)?.errno == EEXIST)
        #expect(source.path == target.path)
        #expect(destination == occupied)
        #expect(contents(source.path) == bytes(100))
        #expect(ResumeRecordFile(of: target.path).read()?.received == 100)
    }
}
