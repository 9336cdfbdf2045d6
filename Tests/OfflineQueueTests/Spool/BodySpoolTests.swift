internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The spool of bodies on a real file system.
@Suite(.timeLimit(.minutes(5))) struct BodySpoolTests {
    private let scratch: ScratchDirectory
    private let directory: String
    private let spool: BodySpool

    init() async throws {
        scratch = try ScratchDirectory()
        directory = scratch.file("spool")
        spool = try await BodySpool.opening(directory)
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory) }
    }

    private func file(of body: SpooledBody) -> String { "\(directory)/\(body.name)" }

    private func permissions(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    private func error(_ body: () async throws(QueueError) -> Void) async -> QueueError? {
        do { try await body() } catch { return error }
        return nil
    }

    // MARK: Keeping

    @Test func `a stored body is read back unchanged from a file with permissions 0600`() async throws {
        let bytes = Data((0..<300_001).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let body = try await spool.store(bytes)
        #expect(try await spool.open(body).content() == bytes)
        #expect(try names == [body.name])
        #expect(permissions(directory) == 0o700)
        #expect(permissions(file(of: body)) == 0o600)
    }

    @Test func `pieces become one body, which gets its name only when it is finished`() async throws {
        let writer = try spool.makeWriter(limit: 10)
        #expect(try names.isEmpty)
        try await writer.append(Data("01234".utf8))
        #expect(try names.allSatisfy { $0.hasSuffix(".part") } && names.count == 1)
        try await writer.append(Data())
        try await writer.append(Data("56789".utf8))
        let body = try await writer.finish()
        #expect(try names == [body.name])
        #expect(try await spool.open(body).content() == Data("0123456789".utf8))
    }

    @Test func `a body over the limit is refused and leaves no file`() async throws {
        let writer = try spool.makeWriter(limit: 10)
        try await writer.append(Data(count: 6))
        #expect(
            await error { () throws(QueueError) in try await writer.append(Data(count: 5)) }?.code
                == .bodyTooLarge
        )
        #expect(try names.isEmpty)
        #expect(await error { () throws(QueueError) in _ = try await writer.finish() }?.code == .stopped)
    }

    @Test func `a discarded or released body leaves no file`() async throws {
        let writer = try spool.makeWriter(limit: 10)
        try await writer.append(Data(count: 6))
        await writer.discard()
        #expect(try names.isEmpty)
        #expect(
            await error { () throws(QueueError) in try await writer.append(Data(count: 1)) }?.code == .stopped
        )
        let files = SimulatedSpoolFiles()
        do {
            let dropped = try BodySpool(files: files).makeWriter(limit: 10)
            try await dropped.append(Data(count: 6))
        }
        try await files.log.waitForLast { $0 == "remove" }
    }

    @Test func `a finished body stays when its writer is released or discards it`() async throws {
        let writer = try spool.makeWriter(limit: 10)
        let body = try await writer.finish()
        await writer.discard()
        #expect(await spool.verify(body) == nil)
        #expect(await error { () throws(QueueError) in _ = try await writer.finish() }?.code == .stopped)
    }

    // MARK: Copying

    @Test(arguments: [0, 1, 131_072, 131_073, 1_000_000])
    func `a file's content is stored, and later changes to the file have no effect`(count: Int) async throws {
        let bytes = [UInt8]((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let path = try scratch.write(bytes, to: "film")
        let body = try await spool.copy(path: path, limit: Int64(count))
        unlink(path)
        #expect(try await spool.open(body).content() == Data(bytes))
    }

    @Test(arguments: [140_000, 150_000, 131_072, 10])
    func `a file that changes during the copy is stored as it was read`(count: Int) async throws {
        let (before, after) = ([UInt8](repeating: 1, count: 145_000), [UInt8](repeating: 2, count: count))
        let files = SimulatedSpoolFiles(foreign: ["/film": [before, after]])
        let spool = BodySpool(files: files)
        let body = try await spool.copy(path: "/film", limit: 150_000)
        // The spool reads 128 KiB at a time, so it reads the rest after the change.
        let expected = before.prefix(131_072) + after.dropFirst(131_072)
        #expect(try await spool.open(body).content() == Data(expected))
        #expect(body.size == Int64(expected.count))
    }

    @Test func `a symbolic link to a body is followed`() async throws {
        let path = try scratch.write([1, 2, 3], to: "film")
        #expect(symlink(path, scratch.file("link")) == 0)
        #expect(try await spool.copy(path: scratch.file("link"), limit: 3).size == 3)
    }

    @Test func `a path that is not a regular file is refused with the kind of the file`() async throws {
        let fifo = scratch.file("fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        for (path, reason) in [
            (fifo, "not a regular file"), (scratch.path, "directory"), ("/dev/zero", "not a regular file"),
            (scratch.file("missing"), "No such file"), ("", "No such file"), ("a\0b", "not a regular file"),
        ] {
            let error = await error { () throws(QueueError) in
                _ = try await spool.copy(path: path, limit: 1000)
            }
            #expect(error?.code == .bodyFileUnusable)
            #expect(error?.path == path)
            #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
        }
        #expect(try names.isEmpty)
    }

    @Test func `a file over the limit is refused`() async throws {
        let path = try scratch.write([UInt8](repeating: 1, count: 1001), to: "film")
        let error = await error { () throws(QueueError) in _ = try await spool.copy(path: path, limit: 1000)
        }
        #expect(error?.code == .bodyTooLarge)
        // A file of procfs reports a size of 0 bytes, but has content.
        let status = await self.error { () throws(QueueError) in
            _ = try await spool.copy(path: "/proc/self/status", limit: 10)
        }
        #expect(status?.code == .bodyTooLarge)
        #expect(try names.isEmpty)
    }

    @Test(.enabled(if: geteuid() != 0, "root may read everything"))
    func `a file that may not be read is refused`() async throws {
        let path = try scratch.write([1], to: "film")
        chmod(path, 0)
        let error = await error { () throws(QueueError) in _ = try await spool.copy(path: path, limit: 1000)
        }
        #expect(error?.code == .bodyFileUnusable)
    }

    // MARK: Verification

    @Test func `a body whose file was removed is reported as missing`() async throws {
        let body = try await spool.store(Data("hello".utf8))
        unlink(file(of: body))
        #expect(await spool.verify(body) == .missing)
    }

    @Test func `a body whose file was truncated, extended or overwritten is reported as changed`()
        async throws
    {
        for content in ["hell", "hello!", "hallo", ""] {
            let body = try await spool.store(Data("hello".utf8))
            try Data(content.utf8).write(to: URL(fileURLWithPath: file(of: body)))
            guard case .changed? = await spool.verify(body) else {
                Issue.record("`\(content)` was taken for `hello`")
                continue
            }
        }
    }

    @Test func `a link, a pipe or a directory in place of a body is reported as changed`() async throws {
        let hello = try scratch.write(Array("hello".utf8), to: "hello")
        let replace: [(String) -> CInt] = [
            { symlink(hello, $0) }, { mkfifo($0, 0o600) }, { mkdir($0, 0o700) },
        ]
        for replace in replace {
            let body = try await spool.store(Data("hello".utf8))
            unlink(file(of: body))
            #expect(replace(file(of: body)) == 0)
            #expect(await spool.verify(body) == .changed("it is not a regular file"))
        }
    }

    @Test func `an opened body is the verified one, even if its file is replaced`() async throws {
        let body = try await spool.store(Data("hello".utf8))
        let opened = try await spool.open(body)
        unlink(file(of: body))
        try Data("other".utf8).write(to: URL(fileURLWithPath: file(of: body)))
        #expect(try opened.content() == Data("hello".utf8))
    }

    // MARK: Removing

    @Test func `the sweep removes orphans and unfinished bodies, and nothing else`() async throws {
        let kept = try await spool.store(Data("kept".utf8))
        let orphan = try await spool.store(Data("orphan".utf8))
        let part = String(repeating: "0", count: 32) + ".part"
        let foreign = ["README", "0.part", orphan.name.uppercased(), orphan.name + ".tmp", ".part"]
        for name in foreign + [part] { try Data().write(to: URL(fileURLWithPath: "\(directory)/\(name)")) }
        let next = try await BodySpool.opening(directory)
        let mine = try await next.store(Data("mine".utf8))
        let removed = try await next.sweep { $0 == kept.name }
        #expect(removed == 2)
        #expect(try Set(names) == Set(foreign + [kept.name, mine.name]))
    }

    @Test func `only the named bodies are removed`() async throws {
        let body = try await spool.store(Data("gone".utf8))
        let other = try scratch.write([1], to: "other")
        await spool.remove([body.name, body.name, "../other", ""])
        #expect(try names.isEmpty)
        #expect(access(other, F_OK) == 0)
    }

    // MARK: The directory

    @Test func `a spool directory that others can read is restricted to its owner`() async throws {
        chmod(directory, 0o755)
        _ = try await BodySpool.opening(directory)
        #expect(permissions(directory) == 0o700)
    }

    @Test func `a directory that is a file or a link is refused`() async throws {
        try scratch.write([], to: "file")
        #expect(symlink(directory, scratch.file("link")) == 0)
        for name in ["file", "link"] {
            let error = await error { () throws(QueueError) in
                _ = try await BodySpool.opening(scratch.file(name))
            }
            #expect(error?.code == .directoryUnusable)
            #expect(error?.path == scratch.file(name))
        }
    }

    @Test func `the free bytes are those of the file system`() async throws {
        let attributes = try FileManager.default.attributesOfFileSystem(forPath: directory)
        let expected = try #require(attributes[.systemFreeSize] as? NSNumber).int64Value
        // The values differ: other processes write in the meantime, and root may use reserved blocks.
        let free = try await spool.freeBytes()
        #expect(free > expected / 2 && free < expected * 2)
    }
}
