internal import Glibc
internal import NetwatchEventLoop

/// The right to a socket path: an exclusive `flock(2)` on `<socket>.lock`, held as long as the value lives.
///
/// The file stays when the lock goes: unlinked, two processes could each lock a file of that name.
struct ControlSocketLock: ~Copyable {
    private let file: FileDescriptor

    private init(file: consuming FileDescriptor) {
        self.file = file
    }

    /// Takes the lock and notes this process's id in the file, for the one who comes too late.
    static func taking(for path: String) throws(ControlSocketError) -> ControlSocketLock {
        let file = try open(path + ".lock")
        do throws(SystemError) {
            try systemCall("flock \(path).lock") { flock(file.rawValue, LOCK_EX | LOCK_NB) }
            try noteOwner(in: file)
        } catch {
            guard error.errno == EWOULDBLOCK else { throw .system(error) }
            throw .inUse(path: path, pid: owner(in: file))
        }
        return ControlSocketLock(file: file)
    }

    private static func open(_ path: String) throws(ControlSocketError) -> FileDescriptor {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        do throws(SystemError) {
            return FileDescriptor(owning: try systemCall("open \(path)") { Glibc.open(path, flags, 0o600) })
        } catch {
            throw .system(error)
        }
    }

    private static func noteOwner(in file: borrowing FileDescriptor) throws(SystemError) {
        let descriptor = file.rawValue
        let text = Array("\(getpid())\n".utf8)
        try systemCall("ftruncate") { ftruncate(descriptor, 0) }
        try systemCall("pwrite") { pwrite(descriptor, text, text.count, 0) }
    }

    private static func owner(in file: borrowing FileDescriptor) -> pid_t? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(file.rawValue, &text, text.count, 0)
        guard count > 0 else { return nil }
        return pid_t(String(decoding: text.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
