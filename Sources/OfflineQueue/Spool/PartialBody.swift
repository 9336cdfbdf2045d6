internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// A body that is being written: the file `NAME.part`, with its size and hash so far.
///
/// All methods may block on the disk. After any failure the file is removed and every further call fails. Linux drops
/// pages that it could not write, so a second `fdatasync(2)` would succeed without them.
final class PartialBody: Sendable {
    private struct State: ~Copyable {
        /// Created with the first bytes, so that a body without any leaves no file behind.
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
    private let state: Mutex<State>

    private var partName: String { name + SpoolName.partSuffix }

    /// - Parameters:
    ///   - name: The name of the complete file.
    ///   - limit: The maximum number of bytes.
    ///   - reserve: The number of bytes to leave free on the file system.
    /// - Throws: ``QueueError/Code/spoolFailed`` when SHA-256 is not available.
    init(_ name: String, in files: any SpoolFiles, limit: Int64, reserve: Int64) throws(QueueError) {
        self.files = files
        self.name = name
        self.limit = limit
        self.reserve = reserve
        do { state = Mutex(State(hash: try SHA256.make())) } catch {
            throw QueueError(writing: error, in: files)
        }
    }

    /// Appends bytes.
    ///
    /// - Throws: ``QueueError/Code/bodyTooLarge``, and what ``finish()`` throws.
    func append(_ bytes: UnsafeRawBufferPointer) throws(QueueError) {
        try discardingOnFailure { state, file throws(QueueError) in
            guard Int64(bytes.count) <= limit - state.size else { throw .bodyTooLarge(limit: limit) }
            try checkCapacity(for: Int64(bytes.count))
            do throws(SystemError) { try write(bytes, to: file, &state) } catch {
                throw QueueError(writing: error, in: files)
            }
        }
    }

    /// Copies the content of a file, or clones it if the file system can share the data.
    ///
    /// Copying within the kernel (`copy_file_range(2)`) would have no advantage: the bytes must be read for their hash
    /// anyway. If the file changed in between, the copy could differ from the bytes that were hashed.
    ///
    /// - Parameter path: The file's path, for messages.
    /// - Throws: ``QueueError/Code/bodyFileUnusable`` when it cannot be read, and what ``append(_:)`` throws.
    func fill(from source: any SpoolFile, at path: String) throws(QueueError) {
        let isCloned = try discardingOnFailure { state, file throws(QueueError) in
            let size: Int64
            do throws(SystemError) { size = try source.size() } catch { throw .unusable(path, error) }
            guard size <= limit else { throw .bodyTooLarge(limit: limit) }
            guard file.clone(source) else {
                // Checked now rather than after most of the file was copied.
                try checkCapacity(for: size)
                return false
            }
            try readBack(file, &state)
            return true
        }
        if !isCloned { try copy(source, path) }
    }

    /// Makes the body durable, first its bytes, then its name.
    ///
    /// - Throws: ``QueueError/Code/insufficientSpace`` or ``QueueError/Code/spoolFailed``, with the spool's path;
    ///   ``QueueError/Code/stopped`` when the body was finished or discarded before.
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
            return SpooledBody(name: name, size: state.size, digest: state.hash.finish())
        }
    }

    /// Removes the file. Does nothing after ``finish()``, or after a failure, which has already removed the file.
    func discard() {
        state.withLock { discard(&$0) }
    }

    /// Checks the free space. The queue's database needs space even to record that a request was delivered.
    private func checkCapacity(for count: Int64) throws(QueueError) {
        let free: Int64
        do throws(SystemError) { free = try files.freeBytes() } catch {
            throw QueueError(writing: error, in: files)
        }
        guard free < count + reserve else { return }
        throw QueueError(
            .insufficientSpace,
            "the body cannot be stored in \(files.path): \(free) bytes are free, of which \(reserve) are reserved",
            path: files.path
        )
    }

    // MARK: Under the lock

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
            let file = try files.create(partName)
            state.file = file
            return file
        } catch {
            throw QueueError(writing: error, in: files)
        }
    }

    /// The file may already have its final name. A file that cannot be removed is left for the sweep.
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
        // The file may have grown after its size was checked and before it was cloned.
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

    /// The error for a caller's file that cannot be used as a body.
    static func unusable(_ path: String, _ error: SystemError) -> QueueError {
        let reason =
            switch error.errno {
            case EISDIR: "it is a directory, not a regular file"
            case EINVAL: "it is not a regular file"
            default: errnoDescription(error.errno)
            }
        return QueueError(.bodyFileUnusable, "\(quoted(path)) cannot be sent: \(reason)", path: path)
    }

    /// The error for a spool that cannot be written to.
    init(writing error: SystemError, in files: any SpoolFiles) {
        let isFull = [ENOSPC, EDQUOT].contains(error.errno)
        let code = isFull ? Code.insufficientSpace : .spoolFailed
        self.init(code, "the body cannot be stored in \(files.path): \(error)", path: files.path)
    }
}
