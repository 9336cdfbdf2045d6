internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// A temporary directory of a test. Releasing the last reference removes it.
package final class ScratchDirectory: Sendable {
    package let path: String

    /// - Parameter parent: The parent directory. Default: `/tmp`, so that the paths of unix sockets stay short enough.
    package init(in parent: String = "/tmp") throws {
        var template = Array("\(parent)/netwatch-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", errno: errno) }
        path = String(decoding: template.dropLast().map(UInt8.init), as: UTF8.self)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    package func file(_ name: String) -> String { "\(path)/\(name)" }
}

extension ScratchDirectory {
    /// Writes or replaces a file and returns its path.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> String {
        let path = file(name)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Writes a shell script and returns its path.
    ///
    /// A process that another test has just forked has a copy of the file's descriptor until execve(2). Meanwhile the
    /// kernel would refuse to run the script (ETXTBSY). It also refuses a read lease (fcntl_locking(2)), so this function
    /// waits until there can be one.
    @discardableResult
    package func writeScript(_ commands: String, to name: String) throws -> String {
        let path = try write(Array("#!/bin/sh\n\(commands)\n".utf8), to: name)
        chmod(path, 0o755)
        let script = FileDescriptor(owning: try systemCall("open") { open(path, O_RDONLY | O_CLOEXEC) })
        let setLease: CInt = 1024  // F_SETLEASE, which Swift does not import
        while fcntl(script.rawValue, setLease, F_RDLCK) != 0, errno == EAGAIN { usleep(1000) }
        return path
    }
}
