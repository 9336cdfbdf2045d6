internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import Synchronization

/// The owner of one partial file, from the first byte to the file's place.
///
/// A file in the temporary directory goes with its owner, unless ``resumeRecord()``, ``leave()`` or
/// ``move(to:options:)`` has handed it on. A file *kept* at a place of the user's stays, with a record beside it from the first
/// byte on, so that a process killed at any moment can go on from there.
///
/// Everything here may wait for the disk. Calls from several threads take turns.
final class PartialDownload: Sendable {
    /// After how many bytes a kept file is synced, and its record replaced.
    ///
    /// A power cut costs at most this much: a second at 128 Mbit/s. The two syncs that it takes are then a
    /// small part of writing it, also on a disk that turns. A process that is killed loses nothing.
    static let syncInterval: Int64 = 16 << 20

    private struct State: ~Copyable {
        var file: PartialFile
        /// What the bytes in the file can be continued with.
        var record: ResumeRecord?
        var synced: Int64
        /// Whether everything in the file is of the record's version. Before the server has answered it may hold
        /// the garbage of a power cut, which no new record must vouch for.
        var isBegun = false
        /// Whether the file is to stay when its owner goes.
        var isHandedOn: Bool
        /// The file must not be used any more.
        private(set) var isClosed = false

        mutating func close() {
            isClosed = true
            file.unlock()
        }
    }

    private let state: Mutex<State>
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
            isHandedOn: isKept || record != nil
        )
        self.state = Mutex(state)
        self.isKept = isKept
        self.syncInterval = syncInterval
    }

    deinit {
        state.withLock { state in
            if !state.isHandedOn, !state.isClosed { try? removeFile(state.file.path) }
        }
    }

    /// A new file in the temporary directory.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)``.
    static func temporary() throws -> PartialDownload {
        let file = try failing(at: NSTemporaryDirectory()) { try TemporaryFiles.newFile() }
        return PartialDownload(file, isKept: false)
    }

    /// The file at a place of the user's: what is there of an earlier download of that URL, or a new one.
    /// ``resumption`` tells which.
    ///
    /// What the file holds is not touched before ``continueWriting(from:total:)`` or
    /// ``startOver(_:_:)``. Whatever else was in it is lost with the latter.
    ///
    /// - Parameters:
    ///   - place: A file URL. Its directory has to be there.
    ///   - url: What is about to be downloaded.
    /// - Throws: ``AFError/fileFailed(error:url:)``, or
    ///   ``AFError/DownloadResumeFailureReason/partialFileInUse(at:)`` while another request writes there.
    static func kept(
        at place: URL,
        for url: URL,
        syncInterval: Int64 = PartialDownload.syncInterval
    ) throws -> PartialDownload {
        let path = try failing(at: place) { try place.localPath() }
        let file = try failing(at: path) { try PartialFile.openingOrCreating(path) }
        var record = ResumeRecordFile(of: path).read()
        if record?.isOf(url) != true { record = nil }
        record = record.flatMap { $0.continued(in: file.length, path) }
        return PartialDownload(file, record: record, isKept: true, syncInterval: syncInterval)
    }

    /// The file of a record that somebody has handed over. The record is not trusted: the file has to be one
    /// that we could have made, and is not touched before the server has answered.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)``,
    ///   ``AFError/DownloadResumeFailureReason/partialFileMissing(at:)``,
    ///   ``AFError/DownloadResumeFailureReason/partialFileInUse(at:)``, or
    ///   ``AFError/DownloadResumeFailureReason/resumeDataInvalid(_:)``.
    static func resuming(_ record: ResumeRecord) throws -> PartialDownload {
        let path = record.partialFile
        let missing = AFError.downloadResumeFailed(
            reason: .partialFileMissing(at: URL(fileURLWithPath: path))
        )
        guard access(path, F_OK) == 0 else { throw missing }
        let file = try failing(at: path) { try PartialFile.opening(path) }
        let beside = ResumeRecordFile(of: path).read()
        try check(record, beside)
        guard let usable = record.continued(in: file.length, path) else { throw missing }
        return PartialDownload(file, record: usable, isKept: beside != nil)
    }

    /// Anybody's file could stand in the record. Ours have a name that nobody else's has, or a record of the
    /// same version beside them.
    private static func check(_ record: ResumeRecord, _ beside: ResumeRecord?) throws {
        let invalid = { AFError.downloadResumeFailed(reason: .resumeDataInvalid($0)) }
        guard let beside else {
            let name = record.partialFile.split(separator: "/").last ?? ""
            if TemporaryFiles.isName(name) { return }
            throw invalid("partialFile `\(record.partialFile)` was not made by a download")
        }
        guard beside.url == record.url, beside.validator == record.validator else {
            throw invalid("partialFile `\(record.partialFile)` has been begun anew since")
        }
    }

    /// Where the file is.
    var url: URL { state.withLock { URL(fileURLWithPath: $0.file.path) } }

    /// How many bytes the file holds.
    var received: Int64 { state.withLock { $0.file.length } }

    /// What to ask the server for the rest with; `nil` when there is nothing to continue.
    var resumption: ResumeRecord? { state.withLock { $0.record } }

    /// Goes on with what is there. This or ``startOver(_:_:)`` comes before the first ``append(_:)``.
    ///
    /// - Parameters:
    ///   - offset: What ``ResumeAnswer/continueAt(_:total:)`` says. Bytes behind it are dropped.
    ///   - total: The length of the whole, as far as it is known.
    func continueWriting(from offset: Int64, total: Int64?) throws {
        try withState { state in
            // Longer it would get zeros.
            guard 0...state.file.length ~= offset else {
                throw SystemError(call: "ftruncate \(state.file.path)", errno: EINVAL)
            }
            // First the bytes, then the record: it is of this boot, and vouches for all of them.
            try state.file.truncate(to: offset)
            state.synced = min(state.synced, offset)
            state.isBegun = true
            state.record?.total = total
            try note(&state)
        }
    }

    /// Begins anew: drops what is there, and the record with it.
    ///
    /// - Parameters:
    ///   - request: What was asked for.
    ///   - head: The answer, whose body comes next.
    func startOver(_ request: URLRequest, _ head: TransferHead) throws {
        try withState { state in
            state.record = nil
            state.synced = 0
            if isKept {
                // First the record: it must not vouch for bytes of another version, not even after a power cut.
                try ResumeRecordFile(of: state.file.path).remove()
                try state.file.truncate(to: 0)
            } else if state.file.length > 0 {
                // An old record may be about, so its file has to go.
                let fresh = try TemporaryFiles.newFile()
                let old = state.file.path
                state.file = fresh
                try removeFile(old)
            }
            state.isHandedOn = isKept
            state.isBegun = true
            state.record = ResumeRecord(of: request, head: head, partialFile: state.file.path)
            try note(&state)
        }
    }

    /// Writes bytes behind what is there.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)``; what was written stays, and can be continued.
    func append(_ bytes: some Sequence<UInt8>) throws {
        try withState { state in
            guard state.isBegun else { throw SystemError(call: "write \(state.file.path)", errno: EINVAL) }
            let wasWritten: Void? = try bytes.withContiguousStorageIfAvailable {
                try state.file.append(UnsafeRawBufferPointer($0))
            }
            if wasWritten == nil { try Array(bytes).withUnsafeBytes { try state.file.append($0) } }
            if isKept, state.file.length - state.synced >= syncInterval { try sync(&state) }
        }
    }

    /// Ends the writing: looks whether everything is there.
    ///
    /// - Parameter total: How long the file has to be, if that is known.
    /// - Throws: `URLError.networkConnectionLost` when the file is shorter, which can then be continued;
    ///   ``AFError/DownloadResumeFailureReason/rangeAnswerInvalid(_:)`` when it is longer, which cannot;
    ///   ``AFError/fileFailed(error:url:)``.
    func finish(expecting total: Int64?) throws {
        try withState { state in
            guard let total = total ?? state.record?.total, total != state.file.length else { return }
            if state.file.length < total {
                try sync(&state)
                throw URLError(.networkConnectionLost)
            }
            state.record = nil
            let text = "\(state.file.length) bytes came of \(total)"
            throw AFError.downloadResumeFailed(reason: .rangeAnswerInvalid(text))
        }
    }

    /// What is needed to go on later; `nil` when the server does not let us. The file then goes with its owner,
    /// else it stays.
    func resumeRecord() -> ResumeRecord? {
        state.withLock { state in
            guard !state.isClosed, state.record != nil, state.file.length > 0 else { return nil }
            guard (try? sync(&state)) != nil else { return nil }
            state.isHandedOn = true
            return state.record
        }
    }

    /// Puts the finished file where it belongs, and forgets the record. When that fails, everything is as it
    /// was.
    ///
    /// - Throws: ``AFError/downloadedFileMoveFailed(error:source:destination:)``.
    func move(to destination: URL, options: DownloadOptions) throws {
        try state.withLock { state in
            let source = URL(fileURLWithPath: state.file.path)
            state.isHandedOn = true
            do {
                try state.file.sync()
                // Afterwards the place could be another request's, and the record there its.
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
                try? note(&state)
                throw AFError.downloadedFileMoveFailed(error: error, source: source, destination: destination)
            }
        }
    }

    /// Leaves the finished file where it is, without its record.
    func leave() throws {
        try withState { state in
            state.isHandedOn = true
            if isKept {
                try state.file.sync()
                try ResumeRecordFile(of: state.file.path).remove()
            }
            state.close()
        }
    }

    /// Removes the file and its record.
    func discard() throws {
        try withState { state in
            if isKept { try ResumeRecordFile(of: state.file.path).remove() }
            try removeFile(state.file.path)
            state.close()
        }
    }

    /// Brings the bytes to the disk, then says so in the record.
    private func sync(_ state: inout State) throws(SystemError) {
        guard state.isBegun else { return }
        do {
            try state.file.sync()
        } catch {
            // The kernel has dropped what it could not write, but shows it still.
            try? state.file.truncate(to: state.synced)
            try? note(&state)
            throw error
        }
        state.synced = state.file.length
        try note(&state)
    }

    private func note(_ state: inout State) throws(SystemError) {
        guard state.isBegun else { return }
        state.record = state.record?.updated(received: state.file.length, synced: state.synced)
        if isKept, let record = state.record { try ResumeRecordFile(of: state.file.path).write(record) }
    }

    private func withState(_ body: (inout State) throws -> Void) throws {
        try state.withLock { state in
            let path = state.file.path
            try Self.failing(at: path) {
                if state.isClosed { throw SystemError(call: "write \(path)", errno: EBADF) }
                try body(&state)
            }
        }
    }

    private static func failing<Result: ~Copyable>(
        at path: String,
        _ body: () throws -> Result
    ) throws -> Result {
        try failing(at: URL(fileURLWithPath: path), body)
    }

    /// Turns failures of the system into the client's.
    private static func failing<Result: ~Copyable>(
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
    /// The record with what can be relied on in the file; `nil` when there is nothing.
    fileprivate func continued(in length: Int64, _ path: String) -> ResumeRecord? {
        guard let usable = usable(of: length) else { return nil }
        var record = self
        record.received = usable
        record.synced = min(synced, usable)
        record.partialFile = URL(fileURLWithPath: path).path
        return record
    }
}
