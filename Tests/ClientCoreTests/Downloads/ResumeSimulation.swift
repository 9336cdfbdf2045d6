internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

@testable internal import ClientCore

/// A simulated download over many attempts. The server may give any response, and the machine may fail at any moment.
///
/// The simulation ends with a complete file, or when all attempts are used up. Each byte of a file depends on the
/// version of the file and on the byte's offset. So a mixture of versions or offsets is detected.
struct ResumeSimulation {
    /// An intentional fault, to verify that the simulation detects it.
    enum Fault {
        case none
        /// The client trusts the whole file after a power failure, including bytes that were not synced.
        case believesUnsyncedBytes
        /// The client appends the body of every 206 to the existing bytes, without checking its version and range.
        case believesEveryPart
    }

    private enum Interruption: Error {
        case connectionLost, killed, powerCut
    }

    private let directory: ScratchDirectory
    private let fault: Fault
    private var generator: SeededGenerator
    private var version = 0
    private let target: URL

    init(seed: UInt64, fault: Fault) throws {
        // Uses /dev/shm, if available, because thousands of syncs take a minute on a disk.
        directory = try ScratchDirectory(in: access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp")
        target = URL(fileURLWithPath: directory.file("part"))
        generator = SeededGenerator(seed: seed)
        self.fault = fault
    }

    enum Ending: Equatable {
        case whole
        case noMoreAttempts
        /// The file is wrong. The value describes the violation.
        case violation(String)

        var isViolation: Bool {
            if case .violation = self { true } else { false }
        }
    }

    mutating func run() throws -> Ending {
        for _ in 0..<12 {
            if draw(5) == 0 { version += 1 }
            do {
                guard let finished = try attempt() else { continue }
                let file = FileManager.default.contents(atPath: directory.file("file")) ?? Data()
                let isWhole = Array(file) == body(of: finished)
                return isWhole ? .whole : .violation("\(file.count) bytes, not version \(finished)")
            } catch Interruption.powerCut {
                try cutPower()
            } catch is Interruption {
                // Dropping the download simulates the end of the process.
            } catch is AFError {
                // The response was rejected. The next one may be accepted.
            }
        }
        return .noMoreAttempts
    }

    private mutating func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }

    private func body(of version: Int) -> [UInt8] {
        (0..<3000 + version * 7).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8) &+ version &* 97) }
    }

    private func tag(_ version: Int) -> String { "\"version-\(version)\"" }

    /// Runs one attempt.
    ///
    /// - Returns: The version that was completed, or `nil` if the download is not complete.
    private mutating func attempt() throws -> Int? {
        let request = get()
        let download = try PartialDownload.kept(
            at: target,
            for: request.url!,
            syncInterval: 500
        )
        if draw(8) == 0 {
            // The download is cancelled before a response arrives.
            _ = download.resumeRecord()
            return nil
        }
        if let record = download.resumption, !record.requestHeaders.isEmpty {
            let (head, body) = answer(record)
            switch decision(record, head) {
            case .continueWith(let range, let total):
                try download.continueWriting(from: range.lowerBound, total: total)
                return try receive(body, download, total)
            case .startOver:
                return try begin(download, request, head, body)
            case .restartWithoutRange: break
            case .alreadyComplete:
                try download.continueWriting(from: record.received, total: record.received)
                return try end(download)
            case .otherBody: return nil
            case .fail(let error): throw error
            }
        }
        return try begin(
            download,
            request,
            wholeHead(body(of: version).count, tag: tag(version)),
            body(of: version)
        )
    }

    private func decision(_ record: ResumeRecord, _ head: TransferHead) -> ResumeDecision {
        if fault == .believesEveryPart, head.status == 206 {
            return .continueWith(record.offset...record.offset, total: nil)
        }
        return .of(record: record, head: head)
    }

    private mutating func begin(
        _ download: PartialDownload,
        _ request: URLRequest,
        _ head: TransferHead,
        _ body: [UInt8]
    ) throws -> Int? {
        try download.startOver(request, head)
        return try receive(body, download, Int64(body.count))
    }

    private mutating func receive(
        _ body: [UInt8],
        _ download: PartialDownload,
        _ total: Int64?
    ) throws -> Int? {
        var rest = body[...]
        while !rest.isEmpty {
            let chunk = rest.prefix(1 + draw(400))
            rest = rest.dropFirst(chunk.count)
            try download.append(chunk)
            switch draw(24) {
            case 0: throw Interruption.killed
            case 1: throw Interruption.powerCut
            case 2: throw Interruption.connectionLost
            default: break
            }
        }
        do { try download.finish(expecting: total) } catch is URLError { return nil }
        return try end(download)
    }

    /// Moves the file to its destination. Returns the version that the record names; without a record, the server's
    /// current version.
    private func end(_ download: PartialDownload) throws -> Int? {
        let finished = download.resumption.flatMap { record in
            (0...version).last { record.validator.fieldValue == tag($0) }
        }
        try download.move(to: URL(fileURLWithPath: directory.file("file")), options: .removePreviousFile)
        return finished ?? version
    }

    private mutating func answer(_ record: ResumeRecord) -> (TransferHead, [UInt8]) {
        let body = body(of: version)
        let whole = (wholeHead(body.count, tag: tag(version)), body)
        let isSame = record.validator.fieldValue == tag(version)
        let offset = Int(record.offset)
        switch draw(12) {
        case 0: return whole
        case 1: return (transferHead(503), Array("later".utf8))
        case 2: return (transferHead(412), [])
        case 3:
            return (transferHead(416, ["Content-Range": "bytes */\(body.count)", "ETag": tag(version)]), [])
        // The server does not support If-Range.
        case 4 where offset < body.count: return part(body, offset..<body.count)
        // The server sends a different range than requested.
        case 5 where offset < body.count: return part(body, max(0, offset - 1)..<body.count)
        case 6 where isSame && offset < body.count:
            return part(body, offset..<offset + (body.count - offset + 1) / 2)
        default: return isSame && offset < body.count ? part(body, offset..<body.count) : whole
        }
    }

    private func part(_ body: [UInt8], _ range: Range<Int>) -> (TransferHead, [UInt8]) {
        let text = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)"
        return (transferHead(206, ["Content-Range": text, "ETag": tag(version)]), Array(body[range]))
    }

    /// Simulates a power failure. At random, the unsynced bytes are all kept, partly lost, or replaced by zeros.
    private mutating func cutPower() throws {
        guard var bytes = FileManager.default.contents(atPath: target.path).map({ Array($0) }) else { return }
        let synced = Int(ResumeRecordFile(of: target.path).read()?.synced ?? 0)
        if fault != .believesUnsyncedBytes { try restart(target) }
        guard synced < bytes.count else { return }
        let zeroed = synced + draw(bytes.count - synced)
        for index in zeroed..<bytes.count { bytes[index] = 0 }
        let length = draw(2) == 0 ? bytes.count : synced + draw(bytes.count - synced)
        try Data(bytes[..<length]).write(to: target)
    }
}
