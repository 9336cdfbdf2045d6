package import Foundation
internal import Glibc

/// A file that is deleted with its last reference, or earlier.
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
