internal import NetwatchEventLoop

/// Compares the file of a body with the accepted body, one chunk after another.
struct BodyComparison: ~Copyable {
    private let body: SpooledBody
    private let size: Int64
    private var hash: SHA256
    private var chunks: SpoolChunks

    init(of file: any SpoolFile, with body: SpooledBody) throws(SystemError) {
        let size = try file.size()
        let hash = try SHA256.make()
        self.body = body
        self.size = size
        self.hash = hash
        chunks = SpoolChunks(of: file)
    }

    /// Reads the next chunk. Blocks.
    ///
    /// - Returns: Whether there may be more to read. A file of the wrong size is not read.
    mutating func readNext() throws(SystemError) -> Bool {
        guard size == body.size, let chunk = try chunks.next() else { return false }
        hash.update(chunk)
        return true
    }

    /// Returns how the file differs from the accepted body; `nil` if it does not. Called once, after the last chunk.
    mutating func difference() -> String? {
        guard size == body.size else { return "it has \(size) bytes instead of \(body.size)" }
        let digest = hash.finish()
        return digest == body.digest ? nil : "its SHA-256 is \(digest) instead of \(body.digest)"
    }
}

/// A comparison that several threads continue, one at a time.
final class SharedComparison: Sendable {
    /// The number of chunks of a piece, which has 1 MiB.
    private static let chunks = 8

    private let comparison: Lock<BodyComparison>

    init(of file: any SpoolFile, with body: SpooledBody) throws(SystemError) {
        comparison = Lock(try BodyComparison(of: file, with: body))
    }

    /// Reads the next piece. Blocks.
    ///
    /// - Returns: Whether there may be more to read.
    func readPiece() throws -> Bool {
        try comparison.withLock { comparison in
            for _ in 0..<Self.chunks {
                guard try comparison.readNext() else { return false }
            }
            return true
        }
    }

    /// How the file differs from the accepted body; `nil` if it does not. Read once, after the last piece.
    var difference: String? { comparison.withLock { $0.difference() } }
}
