internal import Dispatch
package import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// A body that is being written to the file `NAME.part`, with the size and hash of the bytes so far.
///
/// All methods may block on the disk. Any failure removes the file, and every further call fails. A failed sync cannot
/// be repeated: Linux drops pages that it could not write, so a second `fdatasync(2)` would succeed without them.
final class PartialBody: Sendable {
    private struct State: ~Copyable {
        /// The open file; `nil` before the first bytes. An upload that is abandoned before them leaves no file.
        var file: (any SpoolFile)?
        var hash: SHA256
        var size: Int64 = 0
        /// Whether the body is finished or discarded.
        var isClosed = false
    }

    private let files: any SpoolFiles
    private let name: String
    private let limit: Int64
    private let reserve: Int64
    /// The key of the file; `nil` if the file is not encrypted.
    private let key: FileKey?
    private let state: Lock<State>

    private var partName: String { name + SpoolName.partSuffix }

    /// Creates an empty body. The file is created with the first bytes.
    ///
    /// - Parameters:
    ///   - name: The name of the complete file.
    ///   - limit: The maximum number of bytes.
    ///   - reserve: The number of bytes to leave free on the file system.
    ///   - keys: The keys of the queue; `nil` if the body is not encrypted.
    /// - Throws: ``QueueError/Code/spoolFailed`` when OpenSSL fails.
    init(
        _ name: String,
        in files: any SpoolFiles,
        limit: Int64,
        reserve: Int64,
        keys: KeyRing? = nil
    ) throws(QueueError) {
        self.files = files
        self.name = name
        self.limit = limit
        self.reserve = reserve
        do throws(SystemError) {
            if let keys { key = try FileKey.random(for: name, keys) } else { key = nil }
            state = Lock(State(hash: try SHA256.make()))
        } catch {
            throw QueueError(writing: error, in: files)
        }
    }

    /// Appends bytes to the body.
    ///
    /// - Throws: ``QueueError/Code/bodyTooLarge``, and the errors of ``finish()``.
    func append(_ bytes: UnsafeRawBufferPointer) throws(QueueError) {
        try discardingOnFailure { state, file throws(QueueError) in
            guard Int64(bytes.count) <= limit - state.size else { throw .bodyTooLarge(limit: limit) }
            try checkCapacity(for: Int64(bytes.count))
            do throws(SystemError) { try write(bytes, to: file, &state) } catch {
                throw QueueError(writing: error, in: files)
            }
        }
    }

    /// Fills the body with the content of a file. The file is cloned if the file system can share its data, and copied
    /// if it cannot.
    ///
    /// Copying within the kernel (`copy_file_range(2)`) would have no advantage, because the bytes must be read for
    /// their hash anyway. The copy could also differ from the hashed bytes if the file changed between the two steps.
    ///
    /// - Parameter path: The path of the file, for error messages.
    /// - Throws: ``QueueError/Code/bodyFileUnusable`` if the file cannot be read, and the errors of ``append(_:)``.
    func fill(from source: any SpoolFile, at path: String) throws(QueueError) {
        let isCloned = try discardingOnFailure { state, file throws(QueueError) in
            let size: Int64
            do throws(SystemError) { size = try source.size() } catch { throw .unusable(path, error) }
            guard size <= limit else { throw .bodyTooLarge(limit: limit) }
            guard file.clone(source) else {
                // Checked before the copy starts, so that a large file is refused immediately.
                try checkCapacity(for: size)
                return false
            }
            try readBack(file, &state)
            return true
        }
        if !isCloned { try copy(source, path) }
    }

    /// Finishes the body and makes it durable: first its bytes, then its name.
    ///
    /// - Throws: ``QueueError/Code/insufficientSpace`` or ``QueueError/Code/spoolFailed``, with the spool's path;
    ///   ``QueueError/Code/stopped`` if the body was already finished or discarded.
    func finish() throws(QueueError) -> SpooledBody {
        try discardingOnFailure { state, file throws(QueueError) in
            do throws(SystemError) {
                try file.sync()
                CrashPoint.bodySynced.reached()
                try files.rename(partName, to: name)
                try files.syncDirectory()
                CrashPoint.bodyNamed.reached()
            } catch {
                throw QueueError(writing: error, in: files)
            }
            state.file = nil
            state.isClosed = true
            return SpooledBody(
                name: name,
                size: state.size,
                digest: state.hash.finish(),
                sealedKey: key?.sealed
            )
        }
    }

    /// Discards the body and removes its file. Has no effect after ``finish()`` or after a failure.
    func discard() {
        state.withLock { discard(&$0) }
    }

    /// Checks that the reserve is still free after this many more bytes. The database needs the reserve to record
    /// outcomes.
    private func checkCapacity(for count: Int64) throws(QueueError) {
        let free: Int64
        do throws(SystemError) { free = try files.freeBytes() } catch {
            throw QueueError(writing: error, in: files)
        }
        guard free < count + reserve else { return }
        throw QueueError(
            .insufficientSpace,
            "the body cannot be stored in \(files.path): \(free) bytes are free, and the disk reserve of "
                + "\(reserve) bytes must stay free",
            path: files.path
        )
    }

    // MARK: Under the lock

    /// Calls `body` under the lock with the open file, and discards the body if it throws.
    private func discardingOnFailure<Result: Sendable>(
        _ body: (inout State, any SpoolFile) throws(QueueError) -> Result
    ) throws(QueueError) -> Result {
        try state.withLock { state throws(QueueError) in
            if state.isClosed { throw QueueError(.stopped, "the body was already finished or discarded") }
            do throws(QueueError) {
                return try body(&state, try file(of: &state))
            } catch {
                discard(&state)
                throw error
            }
        }
    }

    private func file(of state: inout State) throws(QueueError) -> any SpoolFile {
        if let file = state.file { return file }
        do {
            let created = try files.create(partName)
            let file: any SpoolFile = key.map { SealedFile(created, $0) } ?? created
            state.file = file
            return file
        } catch {
            throw QueueError(writing: error, in: files)
        }
    }

    /// Discards the body. The file may already have its final name. If it cannot be removed, the next
    /// ``BodySpool/sweep(keeping:)`` removes it.
    private func discard(_ state: inout State) {
        guard !state.isClosed else { return }
        state.isClosed = true
        guard state.file != nil else { return }
        state.file = nil
        do { try files.remove(partName) } catch { try? files.remove(name) }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer,
        to file: any SpoolFile,
        _ state: inout State
    ) throws(SystemError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = try file.write(rest, at: state.size)
            guard count > 0 else { throw SystemError(call: "write \(partName)", errno: EIO) }
            state.hash.update(UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
            state.size += Int64(count)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }

    /// Reads the cloned file to determine its size and hash.
    private func readBack(_ file: any SpoolFile, _ state: inout State) throws(QueueError) {
        var chunks = SpoolChunks(of: file)
        do {
            while let chunk = try chunks.next() {
                state.hash.update(chunk)
                state.size += Int64(chunk.count)
            }
        } catch {
            throw QueueError(writing: error, in: files)
        }
        // The source may have grown between the check of its size and the cloning.
        guard state.size <= limit else { throw .bodyTooLarge(limit: limit) }
    }

    private func copy(_ source: any SpoolFile, _ path: String) throws(QueueError) {
        var chunks = SpoolChunks(of: source)
        while true {
            let chunk: UnsafeRawBufferPointer?
            do {
                chunk = try chunks.next()
            } catch {
                discard()
                throw .unusable(path, error)
            }
            guard let chunk else { return }
            try append(chunk)
        }
    }
}

extension QueueError {
    static func bodyTooLarge(limit: Int64) -> QueueError {
        QueueError(.bodyTooLarge, "the body has more than \(limit) bytes")
    }

    /// Returns the error for a caller's file that cannot be used as a body.
    static func unusable(_ path: String, _ error: SystemError) -> QueueError {
        let reason =
            switch error.errno {
            case EISDIR: "it is a directory, not a regular file"
            case EINVAL: "it is not a regular file"
            default: errnoDescription(error.errno)
            }
        return QueueError(.bodyFileUnusable, "\(quoted(path)) cannot be read: \(reason)", path: path)
    }

    /// Creates the error for a body that cannot be written.
    init(writing error: SystemError, in files: any SpoolFiles) {
        let isFull = [ENOSPC, EDQUOT].contains(error.errno)
        let code = isFull ? Code.insufficientSpace : .spoolFailed
        self.init(code, "the body cannot be stored in \(files.path): \(error)", path: files.path)
    }
}

/// Writes a body to the spool in pieces. Releasing the last reference discards an unfinished body.
///
/// Calls take effect in the order in which they are made. An error discards the body.
package final class BodyWriter: Sendable {
    private let body: PartialBody
    /// The serial queue for the disk operations of this body.
    private let queue = DispatchQueue(label: "netwatch.spool.body")

    init(_ body: PartialBody) {
        self.body = body
    }

    deinit {
        queue.async { [body] in body.discard() }
    }

    /// Appends bytes to the body.
    ///
    /// - Throws: ``QueueError``: `bodyTooLarge` if the body exceeds its limit, `insufficientSpace`, `spoolFailed`, or
    ///   `stopped` if the body was already finished or discarded.
    package func append(
        _ bytes: Data,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) {
        try await queue.run { [body] () throws(QueueError) in try body.append(bytes) }
    }

    /// Finishes the body. When this returns, the body is durable.
    ///
    /// - Throws: ``QueueError``: `insufficientSpace`, `spoolFailed`, or `stopped` if the body was already finished or
    ///   discarded.
    package func finish(
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) -> SpooledBody {
        try await queue.run { [body] () throws(QueueError) in try body.finish() }
    }

    /// Discards the body and removes its file. Has no effect on a finished body.
    package func discard() async {
        await queue.run { [body] in body.discard() }
    }
}

extension PartialBody {
    func append(_ bytes: Data) throws(QueueError) {
        // `withUnsafeBytes` rethrows errors without their type, so the error is passed through a variable.
        var failure: QueueError?
        bytes.withUnsafeBytes { bytes in
            do throws(QueueError) { try append(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
