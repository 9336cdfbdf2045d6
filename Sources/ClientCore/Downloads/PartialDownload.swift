internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The partial file of a download, from its first byte until it is moved or left in place.
///
/// There are two kinds of files:
///
/// - A *temporary* file is in the temporary directory. It is deleted when this object is released, unless
///   ``resumeRecord()``, ``leaveInPlace()`` or ``move(to:options:)`` was called.
/// - A *kept* file is at a path that the program has chosen, and is not deleted. Its ``ResumeRecord`` is stored next
///   to it from the first byte on, so that another process can continue the file after this process was killed.
///
/// All methods can block on disk I/O. Calls from several threads are serialized.
final class PartialDownload: Sendable {
    /// The number of bytes after which a kept file is synced and its record replaced: 16 MiB.
    ///
    /// A power failure loses at most this much, which is one second at 134 Mbit/s. A killed process loses nothing. At
    /// this interval, syncing the file and its record takes only a small part of the time for writing, even on a
    /// rotating disk.
    static let syncInterval: Int64 = 16 << 20

    private struct State: ~Copyable {
        var file: PartialFile
        /// The record with which the file can be continued; `nil` if it cannot be continued.
        var record: ResumeRecord?
        /// The number of bytes that are known to be on disk.
        var synced: Int64
        /// Whether ``continueWriting(from:total:)`` or ``startOver(_:_:)`` was called, so that all bytes of the file
        /// belong to the record's version. Before that call, the file may contain invalid bytes from a power failure,
        /// so no new record must be written.
        var isStarted = false
        /// Whether the file stays when the `PartialDownload` is released, because the program knows it.
        var isRetained: Bool {
            didSet { file.isPrivate = !isRetained }
        }
        /// Whether the download has ended: its file was moved, left in place or deleted. The file must then not be
        /// used.
        private(set) var isClosed = false

        mutating func close() {
            isClosed = true
            file.unlock()
        }
    }

    private let state: Lock<State>
    private let isKept: Bool
    private let syncInterval: Int64

    private init(
        _ file: consuming PartialFile,
        record: ResumeRecord? = nil,
        isKept: Bool,
        syncInterval: Int64 = PartialDownload.syncInterval
    ) {
        let record = record.flatMap { $0.received > 0 ? $0 : nil }
        let state = State(
            file: file,
            record: record,
            synced: record?.synced ?? 0,
            isRetained: isKept || record != nil
        )
        self.state = Lock(state)
        self.isKept = isKept
        self.syncInterval = syncInterval
    }

    deinit {
        state.withLock { state in
            if !state.isRetained, !state.isClosed { try? Directory.removeFile(state.file.path) }
        }
    }

    /// Creates a temporary file.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)``.
    static func temporary() throws -> PartialDownload {
        let file = try mappingErrors(at: NSTemporaryDirectory()) { try TemporaryFiles.newFile() }
        return PartialDownload(file, isKept: false)
    }

    /// Opens or creates a kept file. If the file has a record of the same URL, ``resumption`` returns the record.
    ///
    /// The contents of the file do not change before ``continueWriting(from:total:)`` or ``startOver(_:_:)`` is called.
    /// ``startOver(_:_:)`` discards everything in the file.
    ///
    /// - Parameters:
    ///   - place: A file URL. Its directory must exist.
    ///   - url: The URL to be downloaded.
    /// - Throws: ``AFError/fileFailed(error:url:)``, or ``AFError/DownloadResumeFailureReason/partialFileInUse(at:)``
    ///   while another request writes to the file.
    static func kept(
        at place: URL,
        for url: URL,
        syncInterval: Int64 = PartialDownload.syncInterval
    ) throws -> PartialDownload {
        let path = try mappingErrors(at: place) { try place.localPath() }
        let file = try mappingErrors(at: path) { try PartialFile.openingOrCreating(path) }
        var record = ResumeRecordFile(of: path).read()
        if record?.isOf(url) != true { record = nil }
        record = record.flatMap { $0.continued(in: file.length, path) }
        return PartialDownload(file, record: record, isKept: true, syncInterval: syncInterval)
    }

    /// Opens the file of a record that the program has passed.
    ///
    /// The record is not trusted: if no download has created the file, this function throws an error. The contents of
    /// the file do not change before the server has responded.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)``, ``AFError/DownloadResumeFailureReason/partialFileMissing(at:)``,
    ///   ``AFError/DownloadResumeFailureReason/partialFileInUse(at:)``, or
    ///   ``AFError/DownloadResumeFailureReason/resumeDataInvalid(_:)``.
    static func resuming(_ record: ResumeRecord) throws -> PartialDownload {
        let path = record.partialFile
        let missing = AFError.downloadResumeFailed(
            reason: .partialFileMissing(at: URL(fileURLWithPath: path))
        )
        guard access(path, F_OK) == 0 else { throw missing }
        let file = try mappingErrors(at: path) { try PartialFile.opening(path) }
        let stored = ResumeRecordFile(of: path).read()
        try check(record, stored)
        guard let usable = record.continued(in: file.length, path) else { throw missing }
        return PartialDownload(file, record: usable, isKept: stored != nil)
    }

    /// Checks that a download has created the file, because a record from the program can name any file.
    ///
    /// A temporary file is recognized by its name, a kept file by a stored record of the same version.
    private static func check(_ record: ResumeRecord, _ stored: ResumeRecord?) throws {
        let invalid = { AFError.downloadResumeFailed(reason: .resumeDataInvalid($0)) }
        guard let stored else {
            let name = record.partialFile.split(separator: "/").last ?? ""
            if TemporaryFiles.isName(name) { return }
            throw invalid("partialFile `\(record.partialFile)` was not created by a download")
        }
        guard stored.url == record.url, stored.validator == record.validator else {
            throw invalid(
                "the record stored for partialFile `\(record.partialFile)` belongs to another URL or version"
            )
        }
    }

    /// The location of the file.
    var url: URL { state.withLock { URL(fileURLWithPath: $0.file.path) } }

    /// The length of the file in bytes.
    var received: Int64 { state.withLock { $0.file.length } }

    /// The record with which the remaining bytes can be requested; `nil` if the file cannot be continued.
    var resumption: ResumeRecord? { state.withLock { $0.record } }

    /// Continues the existing file. Call this or ``startOver(_:_:)`` before the first ``append(_:)``.
    ///
    /// - Parameters:
    ///   - offset: The offset of ``ResumeDecision/continueWith(_:total:)``. The file is truncated to it.
    ///   - total: The total length, if known.
    func continueWriting(from offset: Int64, total: Int64?) throws {
        try withState { state in
            // With an offset after the end, `ftruncate` would extend the file with zeros.
            guard 0...state.file.length ~= offset else {
                throw SystemError(call: "ftruncate \(state.file.path)", errno: EINVAL)
            }
            // Truncate before writing the record. The new record contains the current boot, so all bytes of the file
            // count as valid from then on.
            try state.file.truncate(to: offset)
            state.synced = min(state.synced, offset)
            state.isStarted = true
            state.record?.total = total
            try writeRecord(&state)
        }
    }

    /// Discards the contents and the record, and starts a new download with a new record.
    ///
    /// - Parameters:
    ///   - request: The original request.
    ///   - head: The head of the response whose body follows.
    func startOver(_ request: URLRequest, _ head: TransferHead) throws {
        try withState { state in
            state.record = nil
            state.synced = 0
            if isKept {
                // Remove the record before the contents. Even after a power failure, the record must not describe
                // bytes of another version.
                try ResumeRecordFile(of: state.file.path).remove()
                try state.file.truncate(to: 0)
            } else if state.file.length > 0 {
                // The program may still have a record that names this file. The new version gets a file with another
                // name, so that this record never describes bytes of another version.
                let fresh = try TemporaryFiles.newFile()
                let old = state.file.path
                state.file = fresh
                try Directory.removeFile(old)
            }
            state.isRetained = isKept
            state.isStarted = true
            state.record = ResumeRecord(of: request, head: head, partialFile: state.file.path)
            try writeRecord(&state)
        }
    }

    /// Appends bytes to the file.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)``. The bytes that were written before stay in the file, which can be
    ///   continued.
    func append(_ bytes: some Sequence<UInt8>) throws {
        try withState { state in
            guard state.isStarted else { throw SystemError(call: "write \(state.file.path)", errno: EINVAL) }
            let wasWritten: Void? = try bytes.withContiguousStorageIfAvailable {
                try state.file.append(UnsafeRawBufferPointer($0))
            }
            if wasWritten == nil { try Array(bytes).withUnsafeBytes { try state.file.append($0) } }
            if isKept, state.file.length - state.synced >= syncInterval { try sync(&state) }
        }
    }

    /// Checks that the file is complete at the end of the body.
    ///
    /// - Parameters:
    ///   - total: The expected length of the complete file; `nil` for the total of the record.
    ///   - rangeEnd: The expected length of the file after this body, if the body is a range. Default `nil`: it is a
    ///     whole body.
    /// - Throws:
    ///   - `URLError.networkConnectionLost` if the file is shorter. It can be continued.
    ///   - ``AFError/DownloadResumeFailureReason/rangeResponseInvalid(_:)`` if it is longer. It cannot be continued.
    ///   - ``AFError/fileFailed(error:url:)`` if a shorter file cannot be synced.
    func finish(expecting total: Int64?, rangeEnd: Int64? = nil) throws {
        try withState { state in
            let received = state.file.length
            let expected = [rangeEnd, total ?? state.record?.total].compactMap(\.self)
            guard let expected = expected.first(where: { $0 != received }) else { return }
            if received < expected {
                try sync(&state)
                let text = "received only \(received) of \(expected) bytes"
                throw URLError(.networkConnectionLost, message: text)
            }
            state.record = nil
            let text = "received \(received) bytes instead of \(expected)"
            throw AFError.downloadResumeFailed(reason: .rangeResponseInvalid(text))
        }
    }

    /// Syncs the file and returns the record with which the download can be continued later. The file then stays, even
    /// if it is temporary.
    ///
    /// - Returns: `nil` if the download cannot be continued, or the file cannot be synced.
    func resumeRecord() -> ResumeRecord? {
        state.withLock { state in
            guard !state.isClosed, state.record != nil, state.file.length > 0 else { return nil }
            guard (try? sync(&state)) != nil else { return nil }
            state.isRetained = true
            return state.record
        }
    }

    /// Moves the finished file to its destination and removes the record. If the move fails, the file and the record
    /// stay as they were.
    ///
    /// - Throws: ``AFError/downloadedFileMoveFailed(error:source:destination:)``.
    func move(to destination: URL, options: DownloadOptions) throws {
        try state.withLock { state in
            let source = URL(fileURLWithPath: state.file.path)
            state.isRetained = true
            do {
                try state.file.sync()
                // Remove the record first. After the move, another request may write to the old path and store its
                // record there.
                if isKept { try ResumeRecordFile(of: state.file.path).remove() }
                try DownloadedFile.move(
                    source.path,
                    open: state.file.openPath,
                    to: destination,
                    options: options,
                    isDurable: isKept
                )
                state.close()
            } catch {
                try? writeRecord(&state)
                throw AFError.downloadedFileMoveFailed(error: error, source: source, destination: destination)
            }
        }
    }

    /// Leaves the finished file in place and removes its record.
    func leaveInPlace() throws {
        try withState { state in
            state.isRetained = true
            if isKept {
                try state.file.sync()
                try ResumeRecordFile(of: state.file.path).remove()
            }
            state.close()
        }
    }

    /// Deletes the file and its record.
    func discard() throws {
        try withState { state in
            if isKept { try ResumeRecordFile(of: state.file.path).remove() }
            try Directory.removeFile(state.file.path)
            state.close()
        }
    }

    /// Syncs the file, then updates the record.
    private func sync(_ state: inout State) throws(SystemError) {
        guard state.isStarted else { return }
        do {
            try state.file.sync()
        } catch {
            // Truncate the file to its synced bytes. After a failed fsync the kernel does not try again to write the
            // pages, but reads may still return their contents.
            try? state.file.truncate(to: state.synced)
            try? writeRecord(&state)
            throw error
        }
        state.synced = state.file.length
        try writeRecord(&state)
    }

    /// Updates the record, and stores it next to a kept file.
    private func writeRecord(_ state: inout State) throws(SystemError) {
        guard state.isStarted else { return }
        state.record = state.record?.updated(received: state.file.length, synced: state.synced)
        if isKept, let record = state.record { try ResumeRecordFile(of: state.file.path).write(record) }
    }

    /// Calls `body` under the lock. Throws ``AFError/fileFailed(error:url:)`` with `EBADF` if the file is closed.
    private func withState(_ body: (inout State) throws -> Void) throws {
        try state.withLock { state in
            let path = state.file.path
            try Self.mappingErrors(at: path) {
                if state.isClosed { throw SystemError(call: "write \(path)", errno: EBADF) }
                try body(&state)
            }
        }
    }

    private static func mappingErrors<Result: ~Copyable>(
        at path: String,
        _ body: () throws -> Result
    ) throws -> Result {
        try mappingErrors(at: URL(fileURLWithPath: path), body)
    }

    /// Calls `body` and converts its system errors to ``AFError``.
    private static func mappingErrors<Result: ~Copyable>(
        at url: URL,
        _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch PartialFile.Failure.inUse {
            throw AFError.downloadResumeFailed(reason: .partialFileInUse(at: url))
        } catch PartialFile.Failure.system(let error) {
            throw AFError.fileFailed(error: error, url: url)
        } catch let error as SystemError {
            throw AFError.fileFailed(error: error, url: url)
        }
    }
}

extension ResumeRecord {
    /// Returns this record, updated for a partial file of the given length: `received` becomes the number of valid
    /// bytes. Returns `nil` if the file does not match the record.
    fileprivate func continued(in length: Int64, _ path: String) -> ResumeRecord? {
        guard let usable = usable(of: length) else { return nil }
        var record = self
        record.received = usable
        record.synced = min(synced, usable)
        record.partialFile = URL(fileURLWithPath: path).path
        return record
    }
}
