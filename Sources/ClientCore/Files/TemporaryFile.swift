package import Foundation
internal import Glibc

/// A file that is deleted when the last reference to this object is released, or earlier by ``remove()``.
package final class TemporaryFile: Sendable {
    package let url: URL

    init(_ url: URL) {
        self.url = url
    }

    deinit { remove() }

    func remove() {
        unlink(url.path)
    }
}
