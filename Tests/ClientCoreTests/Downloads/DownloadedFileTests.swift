internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Moving a finished download to its destination.
@Suite(.timeLimit(.minutes(5))) struct DownloadedFileTests {
    private let directory: ScratchDirectory
    private let source: String
    private let body = Data((0..<700_000).map { UInt8($0 % 251) })

    init() throws {
        directory = try ScratchDirectory()
        source = directory.file("source")
        try body.write(to: URL(fileURLWithPath: source))
        chmod(source, 0o600)
    }

    private func move(to path: String, _ options: DownloadOptions = []) throws {
        try DownloadedFile.move(
            source,
            to: URL(fileURLWithPath: path),
            options: options,
            isDurable: true
        )
    }

    private func moveErrno(to path: String, _ options: DownloadOptions = []) -> Int32? {
        do {
            try move(to: path, options)
            return nil
        } catch {
            return (error as? SystemError)?.errno
        }
    }

    private func isStillAtSource() -> Bool {
        FileManager.default.contents(atPath: source) == body
    }

    @Test func `a file is moved to an unused path with the permissions of new files`() throws {
        let fresh = directory.file("fresh")
        close(open(fresh, O_CREAT | O_WRONLY, 0o666))
        try move(to: directory.file("file"))
        #expect(FileManager.default.contents(atPath: directory.file("file")) == body)
        #expect(!FileManager.default.fileExists(atPath: source))
        var (one, other) = (stat(), stat())
        stat(fresh, &one)
        stat(directory.file("file"), &other)
        #expect(one.st_mode == other.st_mode)
    }

    @Test func `a file whose name was removed is copied from its descriptor`() throws {
        let open = try FileDescriptor.opening(source)
        let byDescriptor = "/proc/self/fd/\(open.rawValue)"
        try FileManager.default.removeItem(atPath: source)
        let target = URL(fileURLWithPath: directory.file("file"))
        try DownloadedFile.move(source, open: byDescriptor, to: target, options: [], isDurable: true)
        #expect(try Data(contentsOf: target) == body)
        // The destination's directory is missing, not the source file.
        let nowhere = URL(fileURLWithPath: directory.file("no/file"))
        #expect(throws: SystemError.self) {
            try DownloadedFile.move(source, open: byDescriptor, to: nowhere, options: [], isDurable: true)
        }
    }

    @Test func `a removed file is copied to another file system, with and without an existing file`() throws {
        let open = try FileDescriptor.opening(source)
        try FileManager.default.removeItem(atPath: source)
        let target = URL(fileURLWithPath: "/dev/shm/netwatch-test-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: target) }
        try Data("old".utf8).write(to: target)
        try DownloadedFile.move(
            source,
            open: "/proc/self/fd/\(open.rawValue)",
            to: target,
            options: .removePreviousFile,
            isDurable: false
        )
        #expect(try Data(contentsOf: target) == body)
    }

    @Test func `an existing file is an error, and both files are kept`() throws {
        let path = directory.file("file")
        try Data("old".utf8).write(to: URL(fileURLWithPath: path))
        #expect(moveErrno(to: path) == EEXIST)
        #expect(moveErrno(to: path, .createIntermediateDirectories) == EEXIST)
        #expect(FileManager.default.contents(atPath: path) == Data("old".utf8))
        #expect(isStillAtSource())
    }

    @Test func `a dangling symbolic link counts as an existing file`() throws {
        let path = directory.file("file")
        symlink(directory.file("nowhere"), path)
        #expect(moveErrno(to: path) == EEXIST)
        #expect(isStillAtSource())
    }

    @Test func `removePreviousFile replaces the file`() throws {
        let path = directory.file("file")
        try Data("old".utf8).write(to: URL(fileURLWithPath: path))
        try move(to: path, .removePreviousFile)
        #expect(FileManager.default.contents(atPath: path) == body)
    }

    @Test func `removePreviousFile keeps the old file if the move fails`() throws {
        let path = directory.file("file")
        try Data("old".utf8).write(to: URL(fileURLWithPath: path))
        unlink(source)
        #expect(moveErrno(to: path, .removePreviousFile) == ENOENT)
        #expect(FileManager.default.contents(atPath: path) == Data("old".utf8))
    }

    @Test func `a directory at the destination is never removed`() throws {
        let path = directory.file("directory")
        mkdir(path, 0o700)
        close(open(path + "/precious", O_CREAT | O_WRONLY, 0o600))
        #expect(moveErrno(to: path, .removePreviousFile) == EISDIR)
        #expect(moveErrno(to: path) == EEXIST)
        #expect(FileManager.default.fileExists(atPath: path + "/precious"))
        #expect(isStillAtSource())
    }

    @Test func `missing directories are created only on request`() throws {
        let path = directory.file("a/b/c/file")
        #expect(moveErrno(to: path) == ENOENT)
        #expect(isStillAtSource())
        try move(to: path, .createIntermediateDirectories)
        #expect(FileManager.default.contents(atPath: path) == body)
    }

    @Test func `a file in place of a directory is an error`() {
        #expect(moveErrno(to: source + "/file") == ENOTDIR)
        #expect(moveErrno(to: source + "/b/file", .createIntermediateDirectories) == ENOTDIR)
        #expect(isStillAtSource())
    }

    @Test func `an unwritable destination is an error`() {
        // Not even root can create files in /proc.
        #expect(moveErrno(to: "/proc/file") != nil)
        #expect(moveErrno(to: "/proc/a/b/file", .createIntermediateDirectories) != nil)
        #expect(isStillAtSource())
    }

    @Test(arguments: ["http://example.com/file", "file:///tmp/a%00b"])
    func `a destination that is not a file path is an error`(_ text: String) {
        #expect(throws: SystemError.self) {
            try DownloadedFile.move(source, to: URL(string: text)!, options: [], isDurable: false)
        }
        #expect(isStillAtSource())
    }

    @Test func `a file can already be at its destination`() throws {
        try move(to: source)
        #expect(isStillAtSource())
    }

    @Test(.enabled(if: isOtherFileSystem("/dev/shm"), "needs /dev/shm on a file system of its own"))
    func `a file is moved to another file system`() throws {
        let there = try ScratchDirectory(in: "/dev/shm")
        try Data("old".utf8).write(to: URL(fileURLWithPath: there.file("file")))
        #expect(moveErrno(to: there.file("file")) == EEXIST)
        #expect(moveErrno(to: there.file("a/file")) == ENOENT)
        #expect(isStillAtSource())
        #expect(try FileManager.default.contentsOfDirectory(atPath: there.path) == ["file"])
        try move(to: there.file("file"), .removePreviousFile)
        #expect(FileManager.default.contents(atPath: there.file("file")) == body)
        #expect(!FileManager.default.fileExists(atPath: source))
        #expect(try FileManager.default.contentsOfDirectory(atPath: there.path) == ["file"])
    }

    @Test func `if many moves to one path run concurrently, exactly one succeeds`() async throws {
        let path = directory.file("file")
        let count = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                let source = directory.file("source-\(number)")
                group.addTask {
                    try? Data("\(number)".utf8).write(to: URL(fileURLWithPath: source))
                    let destination = URL(fileURLWithPath: path)
                    let move = {
                        try DownloadedFile.move(source, to: destination, options: [], isDurable: false)
                    }
                    return (try? move()) != nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(count == 1)
    }
}

/// Returns whether a directory is on a different file system than `/tmp`.
private func isOtherFileSystem(_ path: String) -> Bool {
    var (one, other) = (stat(), stat())
    return stat(path, &one) == 0 && stat("/tmp", &other) == 0 && one.st_dev != other.st_dev
}
