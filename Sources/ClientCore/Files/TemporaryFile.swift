package import Foundation
internal import Glibc

/// A file that is deleted when the last reference to this object is released, or earlier by ``remove()``. If the
/// process is killed, a later process deletes the file; see ``TemporaryFiles``.
package final class TemporaryFile: Sendable {
    package let url: URL
    /// Holds the lock that shows that this process is running.
    private let file: PartialFile?

    init(_ url: URL) {
        self.url = url
        do {
            let opened = try PartialFile.opening(url.path)
            opened.isPrivate = true
            file = consume opened
        } catch {
            file = nil
        }
    }

    deinit { remove() }

    func remove() {
        unlink(url.path)
    }
}
