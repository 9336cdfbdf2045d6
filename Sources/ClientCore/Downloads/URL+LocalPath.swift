internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

extension URL {
    /// The absolute path that a file URL stands for.
    ///
    /// - Throws: `EINVAL` for other URLs, and for NUL in the path, which `path` leaves as the text `%00`: the name
    ///   of another file.
    func localPath() throws(SystemError) -> String {
        guard isFileURL, !path(percentEncoded: true).contains("%00"), !path.isEmpty else {
            throw SystemError(call: "open \(self)", errno: EINVAL)
        }
        return URL(fileURLWithPath: path).path
    }
}
