package import Foundation
internal import NetwatchEventLoop

/// Parses an export, which is untrusted, in pieces.
///
/// Each request is validated before its event is returned, and the size and hash of each body are checked. Only
/// ``finish()`` shows that the export is complete. The parser keeps at most one line and the current piece in memory.
package struct ArchiveParser: ~Copyable {
    /// The meaning of a line. After a `request`, events with the chunks of its body follow, and then `complete` or
    /// `void`.
    package enum Event: Sendable {
        case request(ArchivedRequest, NewRequest)
        /// The next bytes of the current request's body.
        case chunk(Data)
        /// The current request and its body are complete.
        case complete
        /// The current request is not part of the export; see ``ArchiveFormat/void``.
        case void
    }

    private enum Place {
        case beginning
        case betweenRequests
        /// Within a body. The number is the count of bytes parsed so far.
        case body(ArchivedRequest.Body, Int64)
        case end
    }

    private var place = Place.beginning
    private var line = Data()
    private var number = 1
    private var requests = 0
    private var hash: SHA256
    private var bodyHash: SHA256
    private let decoder = QueueJSON.decoder

    /// Creates a parser for one export.
    ///
    /// - Throws: ``SystemError`` if SHA-256 is not available.
    package init() throws {
        let hash = try SHA256.make()
        let bodyHash = try SHA256.make()
        self.hash = hash
        self.bodyHash = bodyHash
    }

    /// Parses the next bytes and returns the events of all lines that end in them.
    ///
    /// - Throws: ``QueueError/Code/invalidImport`` with the number of the invalid line.
    package mutating func consume(_ bytes: Data) throws -> [Event] {
        var events: [Event] = []
        var rest = bytes
        while let length = rest.lineLength {
            try append(rest.prefix(length))
            try parse(&events)
            rest = rest.dropFirst(length + 1)
            (line, number) = (Data(), number + 1)
        }
        try append(rest)
        return events
    }

    /// Checks that the export is complete. Must be called after the last bytes.
    ///
    /// - Throws: ``QueueError/Code/invalidImport`` if the export is truncated.
    package func finish() throws {
        guard line.isEmpty else { throw fault("truncated export: the last line has no newline") }
        guard case .end = place else { throw fault("truncated export: \(expected) is missing") }
    }

    private mutating func append(_ bytes: Data) throws {
        guard line.count + bytes.count <= ArchiveFormat.maximumLineBytes else {
            throw fault("the line is longer than \(ArchiveFormat.maximumLineBytes) bytes")
        }
        line.append(bytes)
    }

    private var expected: String {
        switch place {
        case .beginning: "the header of an export of version \(ArchiveFormat.version)"
        case .betweenRequests: "a request or the end"
        case .body(let body, let count): "the body after \(count) of its \(body.bytes) bytes"
        case .end: "nothing"
        }
    }

    private func fault(_ what: String) -> QueueError {
        QueueError(.invalidImport, "line \(number) of the export is invalid: \(what)")
    }
}

// MARK: - Lines

extension ArchiveParser {
    private mutating func parse(_ events: inout [Event]) throws {
        if case .beginning = place { line = line.withoutByteOrderMark }
        switch place {
        case .beginning: try parseHeader()
        case .betweenRequests where line.starts(with: ArchiveFormat.endStart): return try parseEnd()
        case .betweenRequests: try parseRequest(&events)
        case .body where line.starts(with: ArchiveFormat.voidStart): try parseVoid(&events)
        case .body(let body, let count): try parseChunk(of: body, after: count, &events)
        case .end: throw fault("unexpected line after the end of the export")
        }
        line.withUnsafeBytes { hash.update($0) }
        withUnsafeBytes(of: UInt8(ascii: "\n")) { hash.update($0) }
    }

    private struct Header: Decodable {
        let v: Int
        let type: String
    }

    private mutating func parseHeader() throws {
        guard let header = try? decoder.decode(Header.self, from: line), header.type == ArchiveFormat.type
        else {
            throw fault("expected \(expected)")
        }
        guard header.v == ArchiveFormat.version else {
            throw fault(
                "unsupported version \(header.v); this netwatch supports version \(ArchiveFormat.version)"
            )
        }
        place = .betweenRequests
    }

    private struct RequestLine: Decodable {
        let request: ArchivedRequest
    }

    private mutating func parseRequest(_ events: inout [Event]) throws {
        guard line.starts(with: ArchiveFormat.requestStart) else { throw fault("expected \(expected)") }
        var request: ArchivedRequest
        do {
            request = try decoder.decode(RequestLine.self, from: line).request.withoutSecrets()
            request.holdWithoutUnknownOption()
        } catch {
            throw fault("expected a request: \(QueueJSON.reason(error))")
        }
        do {
            events.append(.request(request, try request.validated()))
        } catch {
            throw fault("the request \(quoted(request.id)) is refused: \(error)")
        }
        requests += 1
        if let body = request.body {
            bodyHash = try SHA256.make()
            place = .body(body, 0)
        } else {
            events.append(.complete)
        }
    }

    private mutating func parseChunk(
        of body: ArchivedRequest.Body,
        after count: Int64,
        _ events: inout [Event]
    ) throws {
        let size = Int(min(Int64(ArchiveFormat.chunkBytes), body.bytes - count))
        let isString = line.count >= 2 && line.first == UInt8(ascii: "\"") && line.last == UInt8(ascii: "\"")
        guard isString, let chunk = Data(base64Encoded: line.dropFirst().dropLast()), chunk.count == size
        else {
            throw fault("expected \(size) base64-encoded bytes of a body")
        }
        chunk.withUnsafeBytes { bodyHash.update($0) }
        events.append(.chunk(chunk))
        guard count + Int64(size) == body.bytes else { return place = .body(body, count + Int64(size)) }
        let digest = bodyHash.finish().description
        guard digest == body.sha256 else {
            throw fault("the body has the SHA-256 \(digest) instead of \(body.sha256)")
        }
        events.append(.complete)
        place = .betweenRequests
    }

    private mutating func parseVoid(_ events: inout [Event]) throws {
        guard line + Data([UInt8(ascii: "\n")]) == ArchiveFormat.void else {
            throw fault("expected \(expected)")
        }
        requests -= 1
        events.append(.void)
        place = .betweenRequests
    }

    /// Compares the last line with the only line that is correct for the parsed export.
    private mutating func parseEnd() throws {
        let end = ArchiveFormat.end(requests: requests, digest: hash.finish())
        guard line + Data([UInt8(ascii: "\n")]) == end else {
            throw fault(
                "expected \(String(decoding: end.dropLast(), as: UTF8.self)): the export was changed or lines are missing"
            )
        }
        place = .end
    }
}
