package import Foundation

/// The stored content of a request.
package enum StoredBody: Hashable, Sendable {
    case none
    case inline(Data)
    case spooled(SpooledBody)
    /// The row names a file that the spool cannot have created.
    case unreadable
    /// The body of a known id is no longer available. `nil` if not even its length is known.
    case gone(size: Int64?)

    /// The maximum size of a body stored in its row. Larger bodies are spool files, because SQLite reads and writes
    /// large blobs more slowly ([SQLite's measurement](https://www.sqlite.org/intern-v-extern-blob.html)).
    package static let maximumInlineBytes = 64 * 1024

    package var size: Int64 {
        switch self {
        case .none, .unreadable, .gone: 0
        case .inline(let data): Int64(data.count)
        case .spooled(let body): body.size
        }
    }
}
