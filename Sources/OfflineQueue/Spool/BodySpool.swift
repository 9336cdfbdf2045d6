internal import Dispatch
package import Foundation
internal import NetwatchEventLoop

/// The bodies that are too large for a row of the database: files in a directory of their own.
///
/// The row is the truth. A file is whole and durable before the row that names it is written, and it is
/// removed after the row's deletion was committed. What a crash leaves in between belongs to no row, and goes
/// with the next ``sweep(keeping:)``. A failure concerns the body at hand and nothing else.
///
/// The disk is waited for on dispatch queues. Everything may be called from any thread.
package final class BodySpool: Sendable {
    /// How much is left free by default: 64 MiB.
    package static let defaultReserve: Int64 = 64 << 20

    let stagedBytes = StagedBytes()

    private let files: any SpoolFiles
    private let reserve: Int64
    /// What the names of this spool's files begin with.
    private let tag = SpoolName.randomTag()
    /// Reading a body through takes as long as the body is; others need not wait for that.
    private let queue = DispatchQueue(label: "netwatch.spool", attributes: .concurrent)

    package init(files: any SpoolFiles, reserve: Int64 = defaultReserve) {
        self.files = files
        self.reserve = reserve
    }

    /// Opens a spool's directory, which is made when it is missing.
    ///
    /// - Parameter reserve: How many bytes bodies leave free on the file system, which the queue's database needs
    ///   for writing down what became of the requests. A body that would take of them is refused with
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

    /// Adds the spool's directory to what has to stay where it is.
    func add(to location: inout StoreLocation) throws(QueueError) {
        do throws(SystemError) {
            guard let inode = try files.inode() else { return }
            try location.add("the spool of bodies", at: files.path, inode: inode)
        } catch {
            throw QueueError(.directoryUnusable, "the spool cannot be used: \(error)", path: files.path)
        }
    }

    // MARK: Keeping

    /// Begins a body that comes in pieces. Touches no file yet.
    ///
    /// - Parameter limit: How many bytes it may have.
    /// - Throws: ``QueueError/Code/spoolFailed`` when there is no SHA-256 to be had.
    package func stage(limit: Int64) throws(QueueError) -> BodyWriter {
        BodyWriter(try makeBody(limit))
    }

    /// Keeps a body that is in memory.
    ///
    /// - Throws: ``QueueError``: `insufficientSpace` or `spoolFailed`, with the spool's path.
    package func keep(_ bytes: Data) async throws(QueueError) -> SpooledBody {
        try await queue.run { () throws(QueueError) in
            let body = try self.makeBody(Int64(bytes.count))
            try body.append(bytes)
            return try body.finish()
        }
    }

    /// Keeps what a file holds now. The file itself may change or go afterwards; one that changes meanwhile
    /// gives what was read of it.
    ///
    /// - Parameters:
    ///   - path: A regular file, read with this process's rights. A path from outside has to be checked for
    ///     what its sender may read.
    ///   - limit: How many bytes it may have.
    /// - Throws: ``QueueError``: `bodyFileUnusable` with the file's path when it cannot be read or is no regular
    ///   file; `bodyTooLarge`; `insufficientSpace` or `spoolFailed` with the spool's path.
    package func adopt(path: String, limit: Int64) async throws(QueueError) -> SpooledBody {
        try await queue.run { [files] () throws(QueueError) in
            let source: any SpoolFile
            do throws(SystemError) { source = try files.openForeign(path) } catch {
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

    /// Looks a body through and opens it. Reads all of it.
    ///
    /// - Throws: ``SpooledBodyFault``: `missing` and `changed` are final, `unreadable` may pass.
    package func open(_ body: SpooledBody) async throws(SpooledBodyFault) -> OpenedBody {
        try await queue.run { [files] () throws(SpooledBodyFault) in
            try OpenedBody.opening(body, in: files)
        }
    }

    /// What is wrong with a body; `nil` when it is whole. Reads all of it.
    package func verify(_ body: SpooledBody) async -> SpooledBodyFault? {
        do {
            _ = try await open(body)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Removing

    /// Removes bodies that no row names any more.
    ///
    /// One that cannot be removed stays for the sweep, and so does one whose removal a power cut undoes: that is
    /// why nothing is reported and nothing synced.
    package func remove(_ names: [String]) async {
        await queue.run { [files] in
            for name in names where SpoolName.isComplete(name) { try? files.remove(name) }
        }
    }

    /// Removes the bodies that were left without a row, and those that were never finished. What this spool has
    /// made itself, and files of other names, are left alone, so that it may be called at any time.
    ///
    /// - Parameter isKept: Whether a row names the body. Called on a dispatch queue, where it may wait.
    /// - Returns: How many were removed.
    /// - Throws: ``QueueError/Code/spoolFailed`` when the directory cannot be read.
    @discardableResult
    package func sweep(
        keeping isKept: @escaping @Sendable (String) -> Bool
    ) async throws(QueueError) -> Int {
        try await queue.run { [self] () throws(QueueError) in
            try orphansNow(isKept).count { (try? files.remove($0)) != nil }
        }
    }

    /// The names of what ``sweep(keeping:)`` would remove.
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

    /// Asks where waiting is allowed.
    func ask(_ question: @escaping @Sendable (String) -> Bool, _ name: String) async -> Bool {
        await queue.run { question(name) }
    }

    /// Opens a file that is not the spool's, or one of the spool's without looking it through, on a dispatch queue.
    func openFile<Failure: Error>(
        _ open: @escaping @Sendable (any SpoolFiles) throws(Failure) -> any SpoolFile
    ) async throws(Failure) -> any SpoolFile {
        try await queue.run { [files] () throws(Failure) in try open(files) }
    }

    /// Reads up to `count` bytes; none at the end.
    func read(_ file: any SpoolFile, at offset: Int64, count: Int) async throws(SystemError) -> Data {
        try await queue.run { () throws(SystemError) in try file.data(at: offset, count: count) }
    }

    /// How many bytes may still be written to the spool's file system (`statvfs(3)`).
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
