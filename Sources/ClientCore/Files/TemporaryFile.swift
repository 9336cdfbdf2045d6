package import Foundation
internal import Glibc

/// A new file that is deleted when the last reference to this object is released, or earlier by ``remove()``. If the
/// process is killed, a later process deletes the file; see ``TemporaryFiles``.
package final class TemporaryFile: Sendable {
    package let url: URL
    /// Holds the lock that shows that this process is running.
    private let file: PartialFile

    /// Creates an empty file.
    ///
    /// - Parameter parent: The temporary directory.
    init(in parent: String) throws(PartialFile.Failure) {
        let new = try TemporaryFiles.newFile(in: parent)
        url = URL(fileURLWithPath: new.path)
        file = consume new
    }

    deinit { remove() }

    func remove() {
        unlink(url.path)
    }
}
