internal import Glibc
internal import NetwatchEventLoop
package import NetwatchTransport
internal import Synchronization

/// A verified and open spooled body. Because the file is open, no other file can take its place.
package final class OpenedBody: Sendable {
    package let body: SpooledBody
    let file: any SpoolFile

    private init(_ body: SpooledBody, _ file: any SpoolFile) {
        self.body = body
        self.file = file
    }

    /// Opens the file and reads all of it. Blocks until that is done.
    static func opening(
        _ body: SpooledBody,
        in files: any SpoolFiles
    ) throws(SpooledBodyFault) -> OpenedBody {
        let file: any SpoolFile
        do { file = try files.open(body.name) } catch { throw SpooledBodyFault(opening: error) }
        let difference: String?
        do { difference = try file.difference(from: body) } catch { throw .unreadable(error) }
        if let difference { throw .changed(difference) }
        return OpenedBody(body, file)
    }

    /// Returns a reader that starts at the first byte. Each reader has its own offset, so there can be any number of
    /// them.
    package func makeReader() -> any BlockingReader { SpoolReader(file) }
}

extension SpoolFile {
    /// Describes how the file differs from the accepted body; `nil` when it does not.
    fileprivate func difference(from body: SpooledBody) throws(SystemError) -> String? {
        let size = try size()
        guard size == body.size else { return "it has \(size) bytes instead of \(body.size)" }
        var hash = try SHA256.make()
        var chunks = SpoolChunks(of: self)
        while let chunk = try chunks.next() { hash.update(chunk) }
        let digest = hash.finish()
        guard digest == body.digest else { return "its SHA-256 is \(digest) instead of \(body.digest)" }
        return nil
    }
}

extension SpooledBodyFault {
    fileprivate init(opening error: SystemError) {
        switch error.errno {
        case ENOENT: self = .missing
        case EISDIR, EINVAL, ELOOP: self = .changed("it is not a regular file")
        default: self = .unreadable(error)
        }
    }
}

/// Reads a spooled file, from the beginning each time the request is sent again.
private final class SpoolReader: BlockingReader {
    private let file: any SpoolFile
    /// Locked, because different threads may read, although never two at once.
    private let offset = Mutex<Int64>(0)

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
