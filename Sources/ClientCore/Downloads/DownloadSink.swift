internal import Foundation
internal import FoundationNetworking

/// Writes a response body to a file, or appends it to a partial file.
struct DownloadSink: ResponseSink {
    /// The file that is written to.
    enum Origin: Sendable {
        case temporary
        /// A file that outlives the process, so that a later request can continue it.
        case kept(URL)
        /// The partial file of a resume record.
        case resuming(ResumeRecord)
    }

    /// How the current body is handled.
    private enum Writing {
        case nothing
        case part(PartialDownload)
        /// A body that is not part of the download, written to a separate file. The partial file is kept.
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
    /// Whether received data is kept when the request fails.
    var keepsPartialFile = true

    private var partialFile: PartialDownload?
    private var writing = Writing.nothing
    /// The request before any redirect. A later process sends it again.
    private var request: URLRequest?
    /// The record with which the remaining bytes were requested.
    private var requestedRecord: ResumeRecord?
    private var needsWholeFile = false
    private var isComplete = false
    private var total: Int64?
    private(set) var offset: Int64 = 0
    private var moved: URL?
    /// The result that ``finish(_:)`` returned. Afterwards nothing is moved or removed.
    private var result: ResponseBody?

    init(_ origin: Origin, to destination: DownloadRequest.DownloadFileDestination?) {
        self.origin = origin
        self.destination = destination
    }

    mutating func prepare(_ request: inout URLRequest) throws {
        let partialFile = try self.partialFile ?? open(for: request)
        self.partialFile = partialFile
        // A complete file that validation rejected is not continued; the result would be the same.
        if isWholeFile { needsWholeFile = true }
        result = nil
        moved = nil
        requestedRecord = needsWholeFile ? nil : partialFile.resumption.flatMap { $0.offset > 0 ? $0 : nil }
        isComplete = false
        writing = .nothing
        offset = 0
        total = nil
        for header in requestedRecord?.requestHeaders ?? [] {
            request.setValue(header.value, forHTTPHeaderField: header.name)
        }
        // Keep the original request even after a redirect: the redirect's target may be valid only once.
        self.request = self.request ?? request
    }

    private func open(for request: URLRequest) throws -> PartialDownload {
        switch origin {
        case .temporary: return try .temporary()
        case .kept(let location):
            guard let url = request.url else { throw URLError(.badURL) }
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
        case .continueAt(let offset, let total):
            try partialFile.continueWriting(from: offset, total: total)
            self.offset = offset
            self.total = total
            writing = .part(partialFile)
        case .startOver:
            try partialFile.startOver(request, head.head)
            writing = .part(partialFile)
        case .restartWithoutRange:
            needsWholeFile = true
            return .sendAgain
        case .alreadyComplete:
            // The total length is now known, so the last byte can be requested. The response to it identifies the
            // version.
            needsWholeFile = requestedRecord.total != nil
            try partialFile.continueWriting(from: requestedRecord.received, total: requestedRecord.received)
            return .sendAgain
        case .otherBody: try writeSeparately(request, head)
        case .fail(let error): throw error
        }
        return .accept
    }

    /// Writes a response that is not the file to a separate file, so that it does not overwrite a file that the user
    /// keeps.
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
    }

    private mutating func writeSeparately(_ request: URLRequest, _ head: ResponseHead) throws {
        let file = try PartialDownload.temporary()
        try file.startOver(request, head.head)
        writing = .separate(file)
    }

    mutating func write(_ bytes: [UInt8]) throws {
        try writing.file?.append(bytes)
    }

    mutating func end(_ failure: (any Error)?) throws {
        needsWholeFile = false
        guard failure == nil else {
            // Another attempt can continue the file.
            _ = partialFile?.resumeRecord()
            return
        }
        guard let file = writing.file else { return }
        try file.finish(expecting: total)
        isComplete = true
    }

    mutating func accept(_ head: ResponseHead?) throws {
        guard result == nil, let destination, let file = current, let response = head?.response else {
            return
        }
        let (url, options) = destination(file.url, response)
        try file.move(to: url, options: options)
        moved = url
    }

    mutating func finish(_ failure: (any Error)?) -> ResponseBody {
        if let result { return result }
        var body = self.body
        if !keepsPartialFile { try? partialFile?.discard() }
        if moved == nil, isComplete { try? current?.leaveInPlace() }
        if keepsPartialFile, !isWholeFile { body.resumeData = partialFile?.resumeRecord()?.data }
        if !isComplete, !staysInPartialFile(body) { body.temporaryURL = nil }
        partialFile = nil
        writing = .nothing
        result = body
        return body
    }

    /// Returns whether an incomplete file outlives the request: because it can be continued, or because the user
    /// keeps it.
    private func staysInPartialFile(_ body: ResponseBody) -> Bool {
        guard case .part = writing else { return false }
        if case .kept = origin { return true }
        return body.resumeData != nil
    }

    /// The file that contains the response.
    private var current: PartialDownload? { writing.file ?? (isComplete ? partialFile : nil) }

    /// Whether the file is complete, so that nothing can be continued.
    private var isWholeFile: Bool {
        if case .separate = writing { return false }
        return isComplete
    }

    var body: ResponseBody {
        result ?? ResponseBody(temporaryURL: current?.url, destinationURL: moved)
    }
}
