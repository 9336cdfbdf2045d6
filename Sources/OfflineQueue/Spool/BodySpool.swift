internal import Dispatch
package import Foundation
package import NetwatchEventLoop
internal import Synchronization

/// The storage of bodies that are too large for a database row, as files in a separate directory.
///
/// The database row decides whether a body exists. The file is complete and durable before the row that names it is
/// written, and is removed after the deletion of the row was committed. A crash in between leaves a file without a row,
/// which the next ``sweep(keeping:)`` removes. A failure affects only the body that is being written or read.
///
/// Disk operations run on dispatch queues, and all methods may be called from any thread.
package final class BodySpool: Sendable {
    /// The default number of bytes that bodies leave free on the file system: 64 MiB.
    package static let defaultReserve: Int64 = 64 << 20

    /// The default time without a call after which an upload counts as stalled: 10 s. No standard
    /// defines it; a client that is still alive calls again as soon as a piece was stored.
    package static let uploadStallTimeout: Duration = .seconds(10)

    /// The total size of uploads that no request uses yet.
    let stagedBytes = StagedBytes()

    private let files: any SpoolFiles
    private let reserve: Atomic<Int64>
    /// The keys that encrypt bodies; `nil` if they are not encrypted.
    private let keys: KeyRing?
    /// The error with which every new body is refused; `nil` if bodies are accepted.
    private let refusal = Lock<QueueError?>(nil)
    /// The prefix of the names of the files that this spool creates.
    private let tag = SpoolName.randomTag()
    /// The queue for disk operations. It is concurrent, so that they do not wait while a large body is being read.
    private let queue = DispatchQueue(label: "netwatch.spool", attributes: .concurrent)

    package init(files: any SpoolFiles, reserve: Int64 = defaultReserve, keys: KeyRing? = nil) {
        self.files = files
        self.reserve = Atomic(reserve)
        self.keys = keys
    }

    /// Opens a spool's directory, and creates it if it is missing.
    ///
    /// - Parameter reserve: The number of bytes that bodies must leave free on the file system, because the database
    ///   needs space to record outcomes. A body that would leave less free is refused with
    ///   ``QueueError/Code/insufficientSpace``.
    /// - Throws: ``QueueError/Code/directoryUnusable`` with the path.
    package static func opening(
        _ path: String,
        reserve: Int64 = defaultReserve,
        keys: KeyRing? = nil
    ) async throws(QueueError) -> BodySpool {
        try await DispatchQueue.global().run { () throws(QueueError) in
            do {
                return BodySpool(files: try SystemSpoolFiles.opening(path), reserve: reserve, keys: keys)
            } catch {
                throw QueueError(.directoryUnusable, "the spool cannot be used: \(error)", path: path)
            }
        }
    }

    /// Replaces the number of bytes that bodies must leave free on the file system, for the bodies that are begun from
    /// now on.
    func use(reserve: Int64) {
        self.reserve.store(reserve, ordering: .relaxed)
    }

    /// Adds the spool's directory to the files whose paths are checked.
    func add(to location: inout StoreLocation) throws(QueueError) {
        do throws(SystemError) {
            guard let inode = try files.inode() else { return }
            try location.add("the spool of bodies", at: files.path, inode: inode)
        } catch {
            throw QueueError(.directoryUnusable, "the spool cannot be used: \(error)", path: files.path)
        }
    }

    // MARK: Keeping

    /// Makes every attempt to store a body fail. Stored bodies can still be read.
    func refuseBodies(with error: QueueError) { refusal.withLock { $0 = error } }

    /// Returns a writer for a body that arrives in pieces. The file is created with the first piece.
    ///
    /// - Parameter limit: The maximum number of bytes.
    /// - Throws: ``QueueError/Code/spoolFailed`` when SHA-256 is not available.
    package func makeWriter(limit: Int64) throws(QueueError) -> BodyWriter {
        BodyWriter(try makeBody(limit))
    }

    /// Stores a body that is in memory.
    ///
    /// - Throws: ``QueueError``: `insufficientSpace` or `spoolFailed`, with the spool's path.
    package func store(_ bytes: Data) async throws(QueueError) -> SpooledBody {
        try await queue.run { () throws(QueueError) in
            let body = try self.makeBody(Int64(bytes.count))
            try body.append(bytes)
            return try body.finish()
        }
    }

    /// Copies the current content of a file into the spool. The caller may change or remove the file afterwards. If the
    /// file changes during the call, the body contains the bytes that were read.
    ///
    /// - Parameters:
    ///   - path: The path of a regular file, which is read with the permissions of this process. If another process
    ///     sent the path, the caller must check that this process may read the file.
    ///   - limit: The maximum number of bytes.
    /// - Throws: ``QueueError``: `bodyFileUnusable` with the file's path if it cannot be read or is not a regular file;
    ///   `bodyTooLarge`; `insufficientSpace` or `spoolFailed` with the spool's path.
    package func copy(path: String, limit: Int64) async throws(QueueError) -> SpooledBody {
        try await queue.run { [files] () throws(QueueError) in
            let source: any SpoolFile
            do throws(SystemError) { source = try files.openExternal(path) } catch {
                throw .unusable(path, error)
            }
            let body = try self.makeBody(limit)
            try body.fill(from: source, at: path)
            return try body.finish()
        }
    }

    private func makeBody(_ limit: Int64) throws(QueueError) -> PartialBody {
        if let refusal = refusal.withLock({ $0 }) { throw refusal }
        return try PartialBody(
            SpoolName.random(tag: tag),
            in: files,
            limit: limit,
            reserve: reserve.load(ordering: .relaxed),
            keys: keys
        )
    }

    // MARK: Sending

    /// Opens a body and verifies its size and digest. Reads the whole file.
    ///
    /// - Throws: ``SpooledBodyFault``: `missing` and `changed` are permanent, `unreadable` may be temporary.
    package func open(_ body: SpooledBody) async throws(SpooledBodyFault) -> OpenedBody {
        try await queue.run { [files, keys] () throws(SpooledBodyFault) in
            try OpenedBody.opening(body, in: files, keys)
        }
    }

    /// Checks a body, and returns the fault; `nil` if it is complete and unchanged. Reads the whole file.
    package func verify(_ body: SpooledBody) async -> SpooledBodyFault? {
        do {
            _ = try await open(body)
            return nil
        } catch {
            return error
        }
    }

    /// Checks a body like ``verify(_:)``, but in pieces, with rests between them.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func verify(_ body: SpooledBody, pace: DiskPace) async throws -> SpooledBodyFault? {
        do {
            let file = try await openUnverified(body)
            let comparison = try await queue.run { try SharedComparison(of: file, with: body) }
            var hasMore = true
            while hasMore {
                let start = ContinuousClock.now
                hasMore = try await queue.run { try comparison.readPiece() }
                try await pace.rest(since: start)
            }
            return comparison.difference.map { .changed($0) }
        } catch let fault as SpooledBodyFault {
            return fault
        } catch let error as SystemError {
            return SpooledBodyFault(reading: error, of: body)
        }
    }

    /// Checks the existence and the size of an encrypted body without its key, and returns the fault.
    ///
    /// - Parameter size: The size of the plaintext.
    func verifySealed(_ name: String, size: Int64) async -> SpooledBodyFault? {
        await queue.run { [files] in files.sizeFault(ofSealed: name, size: size) }
    }

    // MARK: Removing

    /// Removes the files of bodies to which no row refers any more.
    ///
    /// Errors are ignored and the removals are not synced. The next ``sweep(keeping:)`` removes a file that could not
    /// be removed, or that a power failure has brought back.
    package func remove(_ names: [String]) async {
        await queue.run { [files] in
            for name in names where SpoolName.isComplete(name) { try? files.remove(name) }
        }
    }

    /// Removes files of bodies without a row, and files of bodies that were never finished. It may be called at any
    /// time, because it ignores the files that this instance has created. Files whose names are not those of bodies are
    /// ignored, too.
    ///
    /// - Parameter isKept: Returns whether a row refers to the body of this name. Called on a dispatch queue; may
    ///   block.
    /// - Returns: The number of removed files.
    /// - Throws: ``QueueError/Code/spoolFailed`` when the directory cannot be read.
    @discardableResult
    package func sweep(
        keeping isKept: @escaping @Sendable (String) -> Bool
    ) async throws(QueueError) -> Int {
        try await queue.run { [self] () throws(QueueError) in
            try orphansNow(isKept).count { (try? files.remove($0)) != nil }
        }
    }

    /// Returns the names of the files that ``sweep(keeping:)`` would remove.
    package func orphans(
        keeping isKept: @escaping @Sendable (String) -> Bool
    ) async throws(QueueError) -> [String] {
        try await queue.run { [self] () throws(QueueError) in try orphansNow(isKept) }
    }

    private func orphansNow(_ isKept: (String) -> Bool) throws(QueueError) -> [String] {
        let names: [String]
        do throws(SystemError) { names = try files.names() } catch {
            throw QueueError(reading: error, in: files)
        }
        return names.filter { name in
            guard !name.hasPrefix(tag) else { return false }
            return SpoolName.isPart(name) || SpoolName.isComplete(name) && !isKept(name)
        }
    }

    /// Runs a function on the spool's dispatch queue, because the function may block.
    func callBlocking(_ question: @escaping @Sendable (String) -> Bool, _ name: String) async -> Bool {
        await queue.run { question(name) }
    }

    /// Opens the file of a body without verification.
    func openUnverified(_ body: SpooledBody) async throws(SpooledBodyFault) -> any SpoolFile {
        try await queue.run { [files, keys] () throws(SpooledBodyFault) in try files.open(body, keys) }
    }

    /// Copies the file of a body into a new file, which is encrypted with the current keys.
    ///
    /// The content is not verified. If the file was changed, the copy differs from the accepted body, too, and the next
    /// use of the copy detects it.
    ///
    /// - Returns: The copy; `nil` if the file is missing, or is not a regular file.
    /// - Throws: ``QueueError``: `insufficientSpace`, `spoolFailed`, `bodyFileUnusable`.
    func copy(_ body: SpooledBody) async throws(QueueError) -> SpooledBody? {
        let source: any SpoolFile
        do throws(SpooledBodyFault) { source = try await openUnverified(body) } catch {
            guard case .unreadable(let error) = error else { return nil }
            throw QueueError(reading: error, in: files)
        }
        return try await queue.run { [self] () throws(QueueError) in
            let copy = try makeBody(.max)
            try copy.fill(from: source, at: body.name)
            return try copy.finish()
        }
    }

    /// Opens a file on the spool's dispatch queue without verification. `open` chooses the file, in the spool or
    /// outside it.
    func openFile<Failure: Error>(
        _ open: @escaping @Sendable (any SpoolFiles) throws(Failure) -> any SpoolFile
    ) async throws(Failure) -> any SpoolFile {
        try await queue.run { [files] () throws(Failure) in try open(files) }
    }

    /// Reads `count` bytes, or fewer at the end of the file.
    func read(_ file: any SpoolFile, at offset: Int64, count: Int) async throws(SystemError) -> Data {
        try await queue.run { () throws(SystemError) in try file.data(at: offset, count: count) }
    }

    /// Returns the number of free bytes on the spool's file system (statvfs(3)).
    ///
    /// - Throws: ``QueueError/Code/spoolFailed``.
    package func freeBytes() async throws(QueueError) -> Int64 {
        try await queue.run { [files] () throws(QueueError) in
            do throws(SystemError) { return try files.freeBytes() } catch {
                throw QueueError(reading: error, in: files)
            }
        }
    }
}

extension SpoolFile {
    fileprivate func data(at offset: Int64, count: Int) throws(SystemError) -> Data {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { buffer.deallocate() }
        var filled = 0
        while filled < count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let read = try read(into: rest, at: offset + Int64(filled))
            guard read > 0 else { break }
            filled += read
        }
        return Data(buffer.prefix(filled))
    }
}

extension QueueError {
    init(reading error: SystemError, in files: any SpoolFiles) {
        self.init(.spoolFailed, "the spool cannot be read: \(error)", path: files.path)
    }
}

/// The total size in bytes of uploads that no request uses yet. The store counts it towards its limit of bytes.
final class StagedBytes: Sendable {
    private let value = Atomic<Int64>(0)

    var count: Int64 { value.load(ordering: .relaxed) }

    func set(_ count: Int64) { value.store(count, ordering: .relaxed) }
}

/// A reference to a body in a spool file, with the size and digest that the file must have.
///
/// The store saves this value in the request's row. The spool returns it only for a file that is complete and durable.
package struct SpooledBody: Hashable, Sendable {
    /// The name of the file in the spool's directory, chosen by the spool.
    package let name: String
    /// The size in bytes.
    package let size: Int64
    package let digest: SHA256Digest
    /// The key of the file, encrypted with a key of the queue; `nil` if the file is not encrypted.
    package let sealedKey: Data?

    init(name: String, size: Int64, digest: SHA256Digest, sealedKey: Data? = nil) {
        self.name = name
        self.size = size
        self.digest = digest
        self.sealedKey = sealedKey
    }

    /// Creates a value from the columns of a row. Returns `nil` if a value is invalid. A name that a spool never
    /// creates is invalid, so that a manipulated database cannot refer to files elsewhere.
    package init?(row name: String, size: Int64, digest: SHA256Digest?, sealedKey: Data? = nil) {
        guard SpoolName.isComplete(name), size >= 0, let digest else { return nil }
        self.init(name: name, size: size, digest: digest, sealedKey: sealedKey)
    }
}

/// The reason why a spooled body cannot be sent.
package enum SpooledBodyFault: Error, Hashable, Sendable {
    /// The file does not exist. This fault is permanent.
    case missing
    /// The file differs from the accepted body; the text describes the difference. This fault is permanent.
    case changed(String)
    /// The file could not be read, for example because too many files are open or because of an I/O error. This fault
    /// may be temporary.
    case unreadable(SystemError)
}

extension SpooledBodyFault: CustomStringConvertible {
    /// The message for users. It also becomes the last error of a request that is dead because of the fault.
    package var description: String {
        switch self {
        case .missing: "the queue's copy of the body is missing"
        case .changed(let how): "the queue's copy of the body was changed: \(how)"
        case .unreadable(let why): "the queue's copy of the body cannot be read: \(why)"
        }
    }
}

/// The names of the files in a spool: 32 hexadecimal digits. The name of an incomplete file also has the suffix
/// `.part`.
///
/// The first eight digits are the tag of the `BodySpool` instance that created the file, and differ in each run. By the
/// tag, ``BodySpool/sweep(keeping:)`` distinguishes the current run's files from those that an earlier run left.
enum SpoolName {
    static let partSuffix = ".part"

    static func randomTag() -> String { digits(of: UInt32.random(in: .min ... .max)) }

    static func random(tag: String) -> String {
        tag + (0..<3).map { _ in randomTag() }.joined()
    }

    static func isComplete(_ name: String) -> Bool {
        let digits = Array("0123456789abcdef".utf8)
        return name.utf8.count == 32 && name.utf8.allSatisfy(digits.contains)
    }

    static func isPart(_ name: String) -> Bool {
        name.hasSuffix(partSuffix) && isComplete(String(name.dropLast(partSuffix.count)))
    }

    private static func digits(of number: UInt32) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
    }
}
