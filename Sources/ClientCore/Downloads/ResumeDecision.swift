internal import NetwatchTransport

extension ResumeRecord {
    /// The offset of the first missing byte; 0 if there is nothing to continue and no range must be requested.
    ///
    /// For a complete file, the last byte is requested again. The response is then a 206 that identifies the version,
    /// whereas a request for no bytes would be rejected with 416.
    var offset: Int64 {
        guard let total, received >= total else { return received }
        return max(total - 1, 0)
    }

    /// The header fields of a request for the remaining bytes, in addition to its own, which must not contain any of
    /// these.
    ///
    /// `Accept-Encoding` is included because offsets in a compressed body are different.
    var requestHeaders: [TransferRequest.Header] {
        guard offset > 0 else { return [] }
        return [
            .init("Range", "bytes=\(offset)-"),
            .init("If-Range", validator.fieldValue),
            .init("Accept-Encoding", "identity"),
        ]
    }
}

/// How the response to a request for the remaining bytes affects the partial file.
enum ResumeDecision: Sendable {
    /// The body continues at this offset. Bytes of the partial file after it must be dropped first.
    case continueAt(Int64, total: Int64?)
    /// The body is the whole current version.
    case startOver
    /// Neither the partial file nor this body is usable: repeat the request without a range.
    case restartWithoutRange
    /// The partial file is complete: continue at `record.received`, without a body.
    case alreadyComplete
    /// The body is not part of the download, for example an error page. The partial file is kept and can be continued
    /// later; the body is written to a separate file.
    case otherBody
    /// The response is inconsistent. The partial file is kept.
    case fail(AFError)

    /// Returns the decision about the response to a request that was sent with a non-empty
    /// ``ResumeRecord/requestHeaders``.
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
        // A multipart body, which was not requested, has its Content-Range fields in the parts.
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
        if record.validator.isContradicted(by: head) || isContradiction(record.total, total) {
            return .restartWithoutRange
        }
        return .continueAt(range.lowerBound, total: total ?? record.total)
    }

    /// With `If-Range`, a 416 applies to the requested version, because any other version would have been sent as a
    /// whole.
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
        .fail(.downloadResumeFailed(reason: .rangeAnswerInvalid(text)))
    }
}
