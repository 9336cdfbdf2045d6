internal import Foundation
internal import FoundationNetworking

/// Writes a body to a file, and continues one that is there.
struct DownloadSink: ResponseSink {
    /// Which file is written to.
    enum Origin: Sendable {
        case temporary
        /// One that outlives the process, so that a later request goes on with it.
        case kept(URL)
        /// The one that a record is of.
        case resuming(ResumeRecord)
    }

    /// What becomes of the body at hand.
    private enum Writing {
        case nothing
        case part(PartialDownload)
        /// A body that is about something else; the part stays.
        case aside(PartialDownload)

        var file: PartialDownload? {
            switch self {
            case .nothing: nil
            case .part(let file), .aside(let file): file
            }
        }
    }

    private let origin: Origin
    private let destination: DownloadRequest.DownloadFileDestination?
    /// Whether what has come is kept when the request fails.
    var keepsPart = true

    private var part: PartialDownload?
    private var writing = Writing.nothing
    /// What was asked for before any redirect, which is what a later process asks for again.
    private var request: URLRequest?
    /// What the rest was asked for with.
    private var asked: ResumeRecord?
    private var isWholeWanted = false
    private var isComplete = false
    private var total: Int64?
    private(set) var offset: Int64 = 0
    private var moved: URL?
    /// What was told at the end; nothing is moved or removed after it.
    private var told: ResponseBody?

    init(_ origin: Origin, to destination: DownloadRequest.DownloadFileDestination?) {
        self.origin = origin
        self.destination = destination
    }

    mutating func prepare(_ request: inout URLRequest) throws {
        let part = try self.part ?? open(for: request)
        self.part = part
        // What came whole and was refused is not continued, it would be the same again.
        if isAcceptedWhole { isWholeWanted = true }
        told = nil
        moved = nil
        asked = isWholeWanted ? nil : part.resumption.flatMap { $0.offset > 0 ? $0 : nil }
        isComplete = false
        writing = .nothing
        offset = 0
        total = nil
        for header in asked?.requestHeaders ?? [] {
            request.setValue(header.value, forHTTPHeaderField: header.name)
        }
        // After a redirect too, what is downloaded is what was asked for; a place like the one that it was
        // sent to may be good for one time only.
        self.request = self.request ?? request
    }

    private func open(for request: URLRequest) throws -> PartialDownload {
        switch origin {
        case .temporary: return try .temporary()
        case .kept(let place):
            guard let url = request.url else { throw URLError(.badURL) }
            return try .kept(at: place, for: url)
        case .resuming(let record): return try .resuming(record)
        }
    }

    mutating func begin(_ head: ResponseHead) throws -> SinkVerdict {
        guard let part, let request else { return .take }
        guard let asked else {
            try beginWhole(part, request, head)
            return .take
        }
        switch ResumeAnswer.judge(record: asked, head: head.head) {
        case .continueAt(let offset, let total):
            try part.continueWriting(from: offset, total: total)
            self.offset = offset
            self.total = total
            writing = .part(part)
        case .startOver:
            try part.startOver(request, head.head)
            writing = .part(part)
        case .restartWithoutRange:
            isWholeWanted = true
            return .sendAgain
        case .alreadyComplete:
            // Now the length is known, so that the last byte can be asked for: its answer tells the version.
            isWholeWanted = asked.total != nil
            try part.continueWriting(from: asked.received, total: asked.received)
            return .sendAgain
        case .otherBody: try writeAside(request, head)
        case .fail(let error): throw error
        }
        return .take
    }

    /// An answer that is not the file must not cost what is kept at the user's place.
    private mutating func beginWhole(
        _ part: PartialDownload,
        _ request: URLRequest,
        _ head: ResponseHead
    ) throws {
        if case .kept = origin, !(200..<300).contains(head.status) {
            return try writeAside(request, head)
        }
        try part.startOver(request, head.head)
        writing = .part(part)
    }

    private mutating func writeAside(_ request: URLRequest, _ head: ResponseHead) throws {
        let file = try PartialDownload.temporary()
        try file.startOver(request, head.head)
        writing = .aside(file)
    }

    mutating func write(_ bytes: [UInt8]) throws {
        try writing.file?.append(bytes)
    }

    mutating func end(_ failure: (any Error)?) throws {
        isWholeWanted = false
        guard failure == nil else {
            // Another attempt goes on with it.
            _ = part?.resumeRecord()
            return
        }
        guard let file = writing.file else { return }
        try file.finish(expecting: total)
        isComplete = true
    }

    mutating func accept(_ head: ResponseHead?) throws {
        guard told == nil, let destination, let file = current, let response = head?.response else { return }
        let (url, options) = destination(file.url, response)
        try file.move(to: url, options: options)
        moved = url
    }

    mutating func finish(_ failure: (any Error)?) -> ResponseBody {
        if let told { return told }
        var body = self.body
        if !keepsPart { try? part?.discard() }
        if moved == nil, isComplete { try? current?.leave() }
        if keepsPart, !isAcceptedWhole { body.resumeData = part?.resumeRecord()?.data }
        if !isComplete, !staysInPart(body) { body.temporaryURL = nil }
        part = nil
        writing = .nothing
        told = body
        return body
    }

    /// Whether what did not come whole outlives the request: because it can be continued, or is the user's.
    private func staysInPart(_ body: ResponseBody) -> Bool {
        guard case .part = writing else { return false }
        if case .kept = origin { return true }
        return body.resumeData != nil
    }

    /// The file that the response is in.
    private var current: PartialDownload? { writing.file ?? (isComplete ? part : nil) }

    /// Whether there is nothing left to continue.
    private var isAcceptedWhole: Bool {
        if case .aside = writing { return false }
        return isComplete
    }

    var body: ResponseBody {
        told ?? ResponseBody(temporaryURL: current?.url, destinationURL: moved)
    }
}
