internal import Foundation
internal import FoundationNetworking

/// A sink that writes a response body to a new file, or appends it to a partial file.
struct DownloadSink: ResponseSink {
    /// The file to which the body is written.
    enum Origin: Sendable {
        /// A new file in the temporary directory.
        case temporary
        /// A file at a path that the program has chosen. It stays when the process ends, so that a later request
        /// can continue it.
        case kept(URL)
        /// The partial file of a resume record.
        case resuming(ResumeRecord)
    }

    /// The destination of the current body.
    private enum Writing {
        case nothing
        /// The body is part of the download.
        case part(PartialDownload)
        /// The body is not part of the download, for example an error page. It is written to a separate file, and
        /// the partial file is kept.
        case separate(PartialDownload)

        var file: PartialDownload? {
            switch self {
            case .nothing: nil
            case .part(let file), .separate(let file): file
            }
        }
    }

    private let origin: Origin
    private let destination: DownloadRequest.DownloadFileDestination?
    /// Whether the partial file is kept when the request fails.
    var keepsPartialFile = true

    private var partialFile: PartialDownload?
    private var writing = Writing.nothing
    /// The request before any redirect, which a later process sends again.
    private var request: URLRequest?
    /// The record with which the remaining bytes were requested.
    private var requestedRecord: ResumeRecord?
    /// Whether the next request must not ask for a range.
    private var needsWholeFile = false
    /// Whether the current body has been received completely.
    private var isComplete = false
    /// The expected length of the file, if the server has reported it.
    private var total: Int64?
    /// The length that the file has after the current body, if the body is a range.
    private var rangeEnd: Int64?
    /// The offset in the file at which the current body starts.
    private(set) var offset: Int64 = 0
    /// The destination that the program's closure has returned.
    private var destinationURL: URL?
    /// Whether the file was moved to ``destinationURL``.
    private var isMoved = false
    /// The result that ``finish(_:)`` returned. Afterwards, no file is moved or removed.
    private var result: ResponseBody?

    init(_ origin: Origin, to destination: DownloadRequest.DownloadFileDestination?) {
        self.origin = origin
        self.destination = destination
    }

    mutating func prepare(for request: URLRequest) throws -> [TransferRequest.Header] {
        let partialFile = try self.partialFile ?? open(for: request)
        self.partialFile = partialFile
        // A complete file can be left from an attempt that validation rejected. Continuing it would give the same
        // result.
        if isWholeFile { needsWholeFile = true }
        result = nil
        (destinationURL, isMoved) = (nil, false)
        // After a redirect, the original request is kept, because the target of a redirect may be valid only once.
        let original = self.request ?? request
        self.request = original
        let continuesFile = !needsWholeFile && !original.hasRange
        requestedRecord = continuesFile ? partialFile.resumption.flatMap { $0.offset > 0 ? $0 : nil } : nil
        isComplete = false
        writing = .nothing
        offset = 0
        total = nil
        rangeEnd = nil
        return requestedRecord?.requestHeaders ?? []
    }

    private func open(for request: URLRequest) throws -> PartialDownload {
        switch origin {
        case .temporary: return try .temporary()
        case .kept(let location):
            guard let url = request.url else { throw URLError.missingURL }
            return try .kept(at: location, for: url)
        case .resuming(let record): return try .resuming(record)
        }
    }

    mutating func begin(_ head: ResponseHead) throws -> SinkDecision {
        guard let partialFile, let request else { return .accept }
        guard let requestedRecord else {
            try beginWhole(partialFile, request, head)
            return .accept
        }
        switch ResumeDecision.of(record: requestedRecord, head: head.head) {
        case .continueWith(let range, let total):
            try partialFile.continueWriting(from: range.lowerBound, total: total)
            offset = range.lowerBound
            rangeEnd = range.upperBound + 1
            self.total = total
            writing = .part(partialFile)
        case .startOver:
            try partialFile.startOver(request, head.head)
            writing = .part(partialFile)
        case .restartWithoutRange:
            needsWholeFile = true
            return .sendAgain
        case .alreadyComplete:
            // The server has refused the range, and its version is as long as the partial file.
            // - If the total was unknown, the next request asks for the last byte. Its response identifies the version.
            // - If the total was known, the refused request already asked for the last byte, so the next request asks
            //   for the whole file.
            needsWholeFile = requestedRecord.total != nil
            try partialFile.continueWriting(from: requestedRecord.received, total: requestedRecord.received)
            return .sendAgain
        case .otherBody: try writeSeparately(request, head)
        case .fail(let error): throw error
        }
        return .accept
    }

    /// Starts to write a response to a request without a range. An error page is written to a separate file, so that
    /// it does not overwrite a file at a path that the program has chosen.
    private mutating func beginWhole(
        _ partialFile: PartialDownload,
        _ request: URLRequest,
        _ head: ResponseHead
    ) throws {
        if case .kept = origin, !(200..<300).contains(head.status) {
            return try writeSeparately(request, head)
        }
        try partialFile.startOver(request, head.head)
        writing = .part(partialFile)
        rangeEnd = head.head.partLength
    }

    private mutating func writeSeparately(_ request: URLRequest, _ head: ResponseHead) throws {
        let file = try PartialDownload.temporary()
        try file.startOver(request, head.head)
        writing = .separate(file)
    }

    mutating func write(_ piece: BodyPiece) throws {
        guard let file = writing.file else { return }
        if let rangeEnd, file.received + Int64(piece.count) > rangeEnd {
            // The file keeps only bytes of the range, so that it can be continued.
            let text = "the body is longer than its range"
            throw AFError.downloadResumeFailed(reason: .rangeResponseInvalid(text))
        }
        try piece.withUnsafeBytes { try file.append($0) }
    }

    mutating func end(_ failure: (any Error)?) throws {
        needsWholeFile = false
        guard failure == nil else {
            // Update the record, so that another attempt can continue the file.
            _ = partialFile?.resumeRecord()
            return
        }
        guard let file = writing.file else { return }
        try file.finish(expecting: total, rangeEnd: rangeEnd)
        isComplete = true
    }

    mutating func accept(_ head: ResponseHead?) throws {
        guard result == nil, let destination, let file = current, let response = head?.response else {
            return
        }
        let (url, options) = destination(file.url, response)
        destinationURL = url
        try file.move(to: url, options: options)
        isMoved = true
    }

    mutating func finish(_ failure: (any Error)?) -> ResponseBody {
        if let result { return result }
        var body = self.body
        if !keepsPartialFile { try? partialFile?.discard() }
        if !isMoved, isComplete { try? current?.leaveInPlace() }
        if keepsPartialFile, !isWholeFile { body.resumeData = partialFile?.resumeRecord()?.data }
        if !isComplete, !staysInPartialFile(body) { body.temporaryURL = nil }
        partialFile = nil
        writing = .nothing
        result = body
        return body
    }

    /// Returns whether an incomplete file stays after the request: it can be continued, or it is at a path that the
    /// program has chosen.
    private func staysInPartialFile(_ body: ResponseBody) -> Bool {
        guard case .part = writing else { return false }
        if case .kept = origin { return true }
        return body.resumeData != nil
    }

    /// The file that contains the current body; `nil` if there is none.
    private var current: PartialDownload? { writing.file ?? (isComplete ? partialFile : nil) }

    /// Whether the partial file is complete, so that there is nothing to continue.
    private var isWholeFile: Bool {
        if case .separate = writing { return false }
        return isComplete
    }

    var body: ResponseBody {
        result ?? ResponseBody(temporaryURL: current?.url, destinationURL: destinationURL)
    }
}
