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
}
