internal import Foundation
internal import NetwatchEventLoop
internal import OfflineQueue

/// Reads the body that `-d` names: text, `@FILE`, or `@-` for standard input.
enum RequestBody {
    static func read(_ argument: String) throws(CommandError) -> Data {
        guard argument.hasPrefix("@") else { return try limited(Data(argument.utf8), "the body") }
        let name = String(argument.dropFirst())
        if name == "-" {
            return try limited(contents(of: .standardInput, "standard input"), "standard input")
        }
        guard let handle = FileHandle(forReadingAtPath: name) else {
            throw CommandError(.usage, "could not read `\(name)`: \(errnoDescription(errno))")
        }
        guard !isDirectory(name) else {
            throw CommandError(.usage, "could not read `\(name)`: is a directory")
        }
        return try limited(contents(of: handle, "`\(name)`"), "`\(name)`")
    }

    private static func isDirectory(_ path: String) -> Bool {
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
        return exists && isDirectory.boolValue
    }

    /// Reads one byte more than is accepted, so that an endless file is noticed and not read.
    private static func contents(of handle: FileHandle, _ name: String) throws(CommandError) -> Data {
        do {
            return try handle.read(upToCount: QueueRequest.maximumBodyBytes + 1) ?? Data()
        } catch {
            throw CommandError(.usage, "could not read \(name): \(error.localizedDescription)")
        }
    }

    private static func limited(_ data: Data, _ name: String) throws(CommandError) -> Data {
        guard data.count <= QueueRequest.maximumBodyBytes else {
            throw CommandError(
                .usage,
                "\(name) is longer than \(QueueRequest.maximumBodyBytes) bytes, which is the limit of a body"
            )
        }
        return data
    }
}
