internal import Dispatch
package import Foundation
internal import NetwatchEventLoop
internal import Synchronization

/// The storage of bodies that are too large for a database row: files in a separate directory.
///
/// The database row is authoritative. A file is complete and durable before the row that names it is written, and it is
/// removed after the deletion of the row was committed. Files that a crash leaves in between belong to no row, and the
/// next ``sweep(keeping:)`` removes them. A failure affects only the body at hand.
///
/// Disk operations run on dispatch queues. All methods may be called from any thread.
package final class BodySpool: Sendable {
    /// The default number of bytes that are kept free: 64 MiB.
    package static let defaultReserve: Int64 = 64 << 20

    let stagedBytes = StagedBytes()

    private let files: any SpoolFiles
    private let reserve: Int64
    /// The prefix of the names of the files that this spool creates.
    private let tag = SpoolName.randomTag()
    /// Concurrent, because reading a large body takes long, and other operations need not wait for it.
    private let queue = DispatchQueue(label: "netwatch.spool", attributes: .concurrent)

    package init(files: any SpoolFiles, reserve: Int64 = defaultReserve) {
        self.files = files
        self.reserve = reserve
    }

    /// Opens a spool's directory. Creates it if it is missing.
    ///
    /// - Parameter reserve: The number of bytes that bodies leave free on the file system. The queue's database needs
    ///   them to record the outcomes of requests. A body that would use them is refused with
    ///   ``QueueError/Code/insufficientSpace``.
    /// - Throws: ``QueueError/Code/directoryUnusable`` with the path.
    package static func opening(
        _ path: String,
        reserve: Int64 = defaultReserve
    ) async throws(QueueError) -> BodySpool {
        try await DispatchQueue.global().run { () throws(QueueError) in
            do {
                return BodySpool(files: try SystemSpoolFiles.opening(path), reserve: reserve)
            } catch {
                throw QueueError(.directoryUnusable, "the spool cannot be used: \(error)", path: path)
            }
        }
    }

    /// Adds the spool's directory to the files that must stay in place.
    func add(to location: inout StoreLocation) throws(QueueError) {
        do throws(SystemError) {
            guard let inode = try files.inode() else { return }
            try location.add("the spool of bodies", at: files.path, inode: inode)
        } catch {
            throw QueueError(.directoryUnusable, "the spool cannot be used: \(error)", path: files.path)
        }
    }

    // MARK: Keeping

    /// Starts a body that arrives in pieces. Does not create a file yet.
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

    /// Stores the current content of a file. The file may change or be removed afterwards. If it changes during the
    /// call, the body contains what was read.
    ///
    /// - Parameters:
    ///   - path: A regular file, read with this process's permissions. The caller must check that the sender of a path
    ///     may read the file.
    ///   - limit: The maximum number of bytes.
    /// - Throws: ``QueueError``: `bodyFileUnusable` with the file's path when it cannot be read or is no regular file;
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
        try PartialBody(SpoolName.random(tag: tag), in: files, limit: limit, reserve: reserve)
    }

    // MARK: Sending

    /// Verifies a body and opens it. Reads the whole file.
    ///
    /// - Throws: ``SpooledBodyFault``: `missing` and `changed` are permanent, `unreadable` may pass.
    package func open(_ body: SpooledBody) async throws(SpooledBodyFault) -> OpenedBody {
        try await queue.run { [files] () throws(SpooledBodyFault) in
            try OpenedBody.opening(body, in: files)
        }
    }

    /// Returns what is wrong with a body; `nil` when it is complete and unchanged. Reads the whole file.
    package func verify(_ body: SpooledBody) async -> SpooledBodyFault? {
        do {
            _ = try await open(body)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Removing

    /// Removes bodies that no row refers to any more.
    ///
    /// A body that cannot be removed is left for the sweep. So is a body whose removal is undone by a power failure.
    /// Therefore nothing is reported and nothing is synced.
    package func remove(_ names: [String]) async {
        await queue.run { [files] in
            for name in names where SpoolName.isComplete(name) { try? files.remove(name) }
        }
    }

    /// Removes bodies without a row, and bodies that were never finished. Files that this spool has created and files
    /// with other names are not removed, so it may be called at any time.
    ///
    /// - Parameter isKept: Returns whether a row refers to the body. Called on a dispatch queue; may block.
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

    /// Calls a function that may block, on the spool's dispatch queue.
    func callBlocking(_ question: @escaping @Sendable (String) -> Bool, _ name: String) async -> Bool {
        await queue.run { question(name) }
    }

    /// Opens a file on a dispatch queue: a file outside the spool, or a file of the spool without verification.
    func openFile<Failure: Error>(
        _ open: @escaping @Sendable (any SpoolFiles) throws(Failure) -> any SpoolFile
    ) async throws(Failure) -> any SpoolFile {
        try await queue.run { [files] () throws(Failure) in try open(files) }
    }

    /// Reads up to `count` bytes; none at the end.
    func read(_ file: any SpoolFile, at offset: Int64, count: Int) async throws(SystemError) -> Data {
        try await queue.run { () throws(SystemError) in try file.data(at: offset, count: count) }
    }

    /// Returns the number of bytes that are free on the spool's file system (`statvfs(3)`).
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

/// The number of bytes in uploads that no request uses yet. The store counts them against its limit.
final class StagedBytes: Sendable {
    private let value = Atomic<Int64>(0)

    var count: Int64 { value.load(ordering: .relaxed) }

    func set(_ count: Int64) { value.store(count, ordering: .relaxed) }
}
