internal import NetwatchTransport

extension ResumeRecord {
    /// The offset of the first byte to request. If it is 0, the request must not ask for a range.
    ///
    /// For a complete file, this is the offset of the last byte, which is requested again. The server responds with 206
    /// and identifies the version. It would reject a request for zero bytes with 416.
    var offset: Int64 {
        guard let total, received >= total else { return received }
        return max(total - 1, 0)
    }

    /// The header fields that a request for the remaining bytes needs. They replace fields of the same names.
    ///
    /// `Accept-Encoding` is one of them, because a compressed body has different offsets.
    var requestHeaders: [TransferRequest.Header] {
        guard offset > 0 else { return [] }
        return [
            .init("Range", "bytes=\(offset)-"),
            .init("If-Range", validator.fieldValue, isExact: true),
            .init("Accept-Encoding", "identity"),
        ]
    }
}

/// What to do with the partial file after the response to a request for the remaining bytes.
enum ResumeDecision: Sendable {
    /// The body consists of this range of the file, and continues it. The file must be truncated to the first byte of
    /// the range before.
    case continueWith(ClosedRange<Int64>, total: Int64?)
    /// The body is the whole current version, which replaces the contents of the partial file.
    case startOver
    /// Neither the partial file nor the body can be used. The request must be sent again without a range.
    case restartWithoutRange
    /// The partial file has as many bytes as the server's version, so there is no body.
    case alreadyComplete
    /// The body is not part of the download, for example an error page. It is written to a separate file. The partial
    /// file is kept and can be continued later.
    case otherBody
    /// The response is inconsistent. The partial file is kept.
    case fail(AFError)

    /// Returns the decision about the response to a request that was sent with ``ResumeRecord/requestHeaders``.
    ///
    /// - Parameters:
    ///   - record: The record that the request was created from.
    ///   - head: The head of the response.
    static func of(record: ResumeRecord, head: TransferHead) -> ResumeDecision {
        switch head.status {
        case 200: .startOver
        case 206: partDecision(record, head)
        case 412: .restartWithoutRange
        case 416: unsatisfiedDecision(record, head)
        default: .otherBody
        }
    }

    private static func partDecision(_ record: ResumeRecord, _ head: TransferHead) -> ResumeDecision {
        // A multipart response also fails this check, because its Content-Range fields are in the parts.
        let values = head.fields.values(of: "content-range")
        guard values.count == 1, case .part(let range, let total)? = ContentRange(values[0]) else {
            return invalid("Content-Range `\(values.joined(separator: ", "))` is not a byte range")
        }
        guard !isMultipart(head) else { return invalid("it is a multipart body instead of one byte range") }
        guard !head.isEncoded else { return invalid("it has a Content-Encoding, but none was requested") }
        guard range.lowerBound == record.offset else {
            return invalid("Content-Range `\(values[0])` does not start at byte \(record.offset)")
        }
        if let length = head.singleField("content-length"), Int64(length) != Int64(range.count) {
            return invalid("Content-Range `\(values[0])` contradicts Content-Length `\(length)`")
        }
        // A server that ignores `If-Range` sends a part of any version, so the response must show its version.
        guard record.validator.isConfirmed(by: head), !isContradiction(record.total, total) else {
            return .restartWithoutRange
        }
        return .continueWith(range, total: total ?? record.total)
    }

    /// Returns the decision about a 416. The request had `If-Range`, so a 416 means that the server still has the
    /// version of the record. It would have sent any other version as a whole, with 200.
    private static func unsatisfiedDecision(_ record: ResumeRecord, _ head: TransferHead) -> ResumeDecision {
        guard case .unsatisfied(let total)? = head.singleField("content-range").flatMap(ContentRange.init),
            total == record.received, !isContradiction(record.total, total),
            !record.validator.isContradicted(by: head)
        else { return .restartWithoutRange }
        return .alreadyComplete
    }

    private static func isContradiction(_ one: Int64?, _ other: Int64?) -> Bool {
        guard let one, let other else { return false }
        return one != other
    }

    private static func isMultipart(_ head: TransferHead) -> Bool {
        head.fields.values(of: "content-type").contains { $0.lowercased().hasPrefix("multipart/byteranges") }
    }

    private static func invalid(_ text: String) -> ResumeDecision {
        .fail(.downloadResumeFailed(reason: .rangeResponseInvalid(text)))
    }
}
