internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite struct PrivateFileTests {
    private let directory = try! ScratchDirectory()
    private var path: String { directory.file("file") }

    @Test func `a file is replaced as a whole, and only its owner can access it`() throws {
        #expect(try PrivateFile.read(path, upTo: 10) == nil)
        // A process that ended has left a part of the new content.
        _ = try directory.write(Array("an earlier attempt".utf8), to: "file.new")
        try PrivateFile.replace(path, with: Array("first".utf8), isDurable: true)
        try PrivateFile.replace(path, with: Array("2nd".utf8), isDurable: true)
        let content = try #require(try PrivateFile.read(path, upTo: 3))
        var status = stat()
        #expect(content.bytes == Array("2nd".utf8) && stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600 && content.modified == status.st_mtim.tv_sec)
        #expect(access(directory.file("file.new"), F_OK) != 0)
    }

    @Test func `the old content remains if the new one cannot be written`() throws {
        try PrivateFile.replace(path, with: [1], isDurable: true)
        try #require(mkdir(directory.file("file.new"), 0o700) == 0)
        let error = #expect(throws: SystemError.self) {
            try PrivateFile.replace(path, with: [2], isDurable: true)
        }
        #expect(error?.errno == EISDIR)
        #expect(try PrivateFile.read(path, upTo: 1)?.bytes == [1])
    }

    @Test func `a large file, a FIFO, a directory and a symbolic link are refused`() throws {
        _ = try directory.write([1, 2, 3, 4], to: "large")
        try #require(mkfifo(directory.file("fifo"), 0o600) == 0)
        try #require(symlink("large", directory.file("link")) == 0)
        let cases = [("large", EFBIG), ("fifo", EINVAL), (".", EINVAL), ("link", ELOOP)]
        for (name, errno) in cases {
            let error = #expect(throws: SystemError.self) {
                try PrivateFile.read(directory.file(name), upTo: 3)
            }
            #expect(error?.errno == errno, "\(name)")
        }
    }
}
