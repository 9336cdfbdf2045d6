internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite struct LockFileTests {
    private let directory = try! ScratchDirectory()
    private var path: String { directory.file("lock") }

    @Test func `a held lock reports its owner`() throws {
        let lock = try LockFile.taking(path)
        #expect(throws: LockFile.Failure.held(by: getpid())) { _ = try LockFile.taking(path) }
        withExtendedLifetime(lock) {}
    }

    /// The copy simulates a program that is being started: between fork(2) and exec(2) it has a copy of every
    /// descriptor.
    @Test func `a released lock can be acquired while a copy of its descriptor is open`() throws {
        var lock: LockFile? = try LockFile.taking(path)
        let copy = FileDescriptor(owning: dup(try #require(descriptor(of: path))))
        #expect(throws: LockFile.Failure.held(by: getpid())) { _ = try LockFile.taking(path) }
        lock = nil
        #expect(throws: Never.self) { lock = try LockFile.taking(path) }
        withExtendedLifetime(copy) {}
        _ = consume lock
    }

    /// Returns the open descriptor of a file.
    private func descriptor(of path: String) -> CInt? {
        (0..<CInt(getdtablesize())).prefix(65_536).first { descriptor in
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/\(descriptor)", &bytes, bytes.count)
            return count > 0 && String(decoding: bytes.prefix(count), as: UTF8.self) == path
        }
    }
}
