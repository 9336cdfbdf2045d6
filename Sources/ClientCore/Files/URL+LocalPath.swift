internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

extension URL {
    /// Returns the absolute path of a file URL.
    ///
    /// - Throws: `EINVAL` for other URLs, and for a path with NUL. Foundation's `path` would leave it as the text
    ///   `%00`, which names another file.
    func localPath() throws(SystemError) -> String {
        guard isFileURL, !path(percentEncoded: true).contains("%00"), !path.isEmpty else {
            throw SystemError(call: "open \(self)", errno: EINVAL)
        }
        return URL(fileURLWithPath: path).path
    }
}
