internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The file `queue.damaged` next to the database. It records damage that a running queue found.
///
/// Opening a store checks only a few pages, because a full check would take time in proportion to the store's size.
/// Without this file, a service that stopped at a damaged page would be restarted, notice nothing, and stop at the same
/// page again.
struct DamageMarker {
    private let path: String
    private let directory: String

    init(directory: String) {
        self.directory = directory
        path = "\(directory)/queue.damaged"
    }

    /// The recorded damage (the first line of the file); `nil` if there is no file.
    var text: String? {
        guard let file = try? FileDescriptor.opening(path) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = max(0, pread(file.rawValue, &bytes, bytes.count, 0))
        return String(decoding: bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// The directory to which the damaged store is being moved (the second line of the file); `nil` if no move has
    /// begun.
    var target: String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n")
        return lines.count > 1 ? String(lines[1]) : nil
    }

    /// Writes the file and syncs it.
    ///
    /// - Parameters:
    ///   - text: The damage. Only the first 500 characters are kept, on one line.
    ///   - target: The directory to which the store is about to be moved.
    func write(_ text: String, target: String? = nil) throws(SystemError) {
        let line = text.replacing("\n", with: " ").prefix(500)
        let bytes = Array("\(line)\n\(target.map { "\($0)\n" } ?? "")".utf8)
        let file = try FileDescriptor.openingPrivate(path)
        let descriptor = file.rawValue
        try systemCall("ftruncate \(path)") { ftruncate(descriptor, 0) }
        try systemCall("pwrite \(path)") { pwrite(descriptor, bytes, bytes.count, 0) }
        try systemCall("fsync \(path)") { fsync(descriptor) }
        try Directory.sync(directory)
    }

    func remove() throws(SystemError) {
        try Directory.removeFile(path)
        try Directory.sync(directory)
    }
}
