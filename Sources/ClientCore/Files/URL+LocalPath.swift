internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

extension URL {
    /// Returns the absolute path of a file URL.
    ///
    /// - Throws: `EINVAL` if the URL is not a file URL, or if its path contains a NUL byte (`%00`). Foundation's `path`
    ///   would keep the text `%00`, which names another file.
    func localPath() throws(SystemError) -> String {
        guard isFileURL, !path(percentEncoded: true).contains("%00"), !path.isEmpty else {
            throw SystemError(call: "open \(textWithoutSecrets)", errno: EINVAL)
        }
        return URL(fileURLWithPath: path).path
    }
}
