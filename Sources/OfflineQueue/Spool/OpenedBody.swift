internal import Glibc
internal import NetwatchEventLoop
package import NetwatchTransport

/// A spooled body that was verified and whose file is open. While it is open, no other file can take its place.
package final class OpenedBody: Sendable {
    package let body: SpooledBody
    let file: any SpoolFile

    private init(_ body: SpooledBody, _ file: any SpoolFile) {
        self.body = body
        self.file = file
    }

    /// Opens the file of a body, and verifies its size and digest. Blocks while it reads the whole file.
    static func opening(
        _ body: SpooledBody,
        in files: any SpoolFiles,
        _ keys: KeyRing?
    ) throws(SpooledBodyFault) -> OpenedBody {
        let file = try files.open(body, keys)
        let difference: String?
        do { difference = try file.difference(from: body) } catch {
            throw SpooledBodyFault(reading: error, of: body)
        }
        if let difference { throw .changed(difference) }
        return OpenedBody(body, file)
    }

    /// Returns a reader that starts at the first byte. Each reader has its own offset, so several can be used at the
    /// same time.
    package func makeReader() -> any BlockingReader { SpoolReader(file) }
}

extension SpoolFiles {
    /// Opens the file of a body without verification, and decrypts what is read from it.
    func open(_ body: SpooledBody, _ keys: KeyRing?) throws(SpooledBodyFault) -> any SpoolFile {
        let file: any SpoolFile
        do { file = try open(body.name) } catch { throw SpooledBodyFault(opening: error) }
        guard let sealedKey = body.sealedKey else { return file }
        do {
            return SealedFile(file, try FileKey.opening(sealedKey, of: body.name, keys))
        } catch {
            throw SpooledBodyFault(error)
        }
    }

    /// Returns the fault of an encrypted file whose key is missing; `nil` if its size is that of a complete file.
    ///
    /// - Parameter size: The size of the plaintext.
    func sizeFault(ofSealed name: String, size: Int64) -> SpooledBodyFault? {
        guard SpoolName.isComplete(name) else { return .missing }
        let expected = SealedFile.size(of: size)
        do throws(SystemError) {
            let found = try open(name).size()
            return found == expected ? nil : .changed("it has \(found) bytes instead of \(expected)")
        } catch {
            return SpooledBodyFault(opening: error)
        }
    }
}

extension SpoolFile {
    /// Returns how the file differs from the accepted body; `nil` if it does not.
    fileprivate func difference(from body: SpooledBody) throws(SystemError) -> String? {
        var comparison = try BodyComparison(of: self, with: body)
        while try comparison.readNext() {}
        return comparison.difference()
    }
}

extension SpooledBodyFault {
    /// Creates the fault for an error that ended the read of a body.
    init(reading error: SystemError, of body: SpooledBody) {
        // File systems report errors of their own checksums with the same number.
        let isSealed = body.sealedKey != nil && error.errno == EBADMSG
        self = isSealed ? .changed("its authentication tag is wrong") : .unreadable(error)
    }

    fileprivate init(_ fault: SealFault) {
        switch fault.cause {
        // The error of Linux for an encrypted file whose key is missing (fscrypt).
        case .keyMissing: self = .unreadable(SystemError(call: "\(fault)", errno: ENOKEY))
        case .damaged, .malformed: self = .changed("\(fault)")
        case .system(let error): self = .unreadable(error)
        }
    }

    fileprivate init(opening error: SystemError) {
        switch error.errno {
        case ENOENT: self = .missing
        case EISDIR, EINVAL, ELOOP: self = .changed("it is not a regular file")
        default: self = .unreadable(error)
        }
    }
}

/// Reads a spooled body for the HTTP client, which rewinds it when it must send the body again.
private final class SpoolReader: BlockingReader {
    private let file: any SpoolFile
    /// The offset of the next read. It is in a lock because different threads read, although never at the same time.
    private let offset = Lock<Int64>(0)

    init(_ file: any SpoolFile) {
        self.file = file
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        let count = try file.read(into: buffer, at: offset.withLock { $0 })
        offset.withLock { $0 += Int64(count) }
        return count
    }

    var isRewindable: Bool { true }

    func rewind() -> Bool {
        offset.withLock { $0 = 0 }
        return true
    }
}

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
