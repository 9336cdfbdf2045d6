package import Foundation

/// The body of a request as it is stored.
package enum StoredBody: Hashable, Sendable {
    case none
    /// The body is in the database.
    case inline(Data)
    /// The body is a file in the spool.
    case spooled(SpooledBody)
    /// The row contains the name of a file that the spool cannot have created, or a body of another length.
    case unreadable
    /// The body is in the database and differs from the accepted body; the text describes the difference.
    case changed(String)
    /// The caller enqueues a known id again, and its body is no longer available for comparison. `size` is `nil` if the
    /// body's length is not known either.
    case gone(size: Int64?)

    /// The maximum size of a body that is stored in the database: 64 KiB.
    ///
    /// A larger body is a file in the spool, because SQLite reads and writes large blobs more slowly than a file system
    /// does ([SQLite's measurement](https://www.sqlite.org/intern-v-extern-blob.html)).
    package static let maximumInlineBytes = 64 * 1024

    /// The name of the body's file; `nil` if the body is not in a file.
    var fileName: String? {
        if case .spooled(let body) = self { body.name } else { nil }
    }

    package var size: Int64 {
        switch self {
        case .none, .unreadable, .changed, .gone: 0
        case .inline(let data): Int64(data.count)
        case .spooled(let body): body.size
        }
    }
}
