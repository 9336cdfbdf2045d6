internal import NetwatchTransport

extension ResumeRecord {
    /// Where the rest begins; 0 when there is nothing to continue, and no range is to be asked for.
    ///
    /// Of a file that is whole already the last byte is asked for again: the answer is then a 206 that tells
    /// its version, whereas no byte at all would be refused with a 416.
    var offset: Int64 {
        guard let total, received >= total else { return received }
        return max(total - 1, 0)
    }

    /// What a request for the rest carries besides its own headers, which must not have any of these.
    ///
    /// `Accept-Encoding` is there because the offsets of a compressed body are others.
    var requestHeaders: [TransferRequest.Header] {
        guard offset > 0 else { return [] }
        return [
            .init("Range", "bytes=\(offset)-"),
            .init("If-Range", validator.fieldValue),
            .init("Accept-Encoding", "identity"),
        ]
    }
}

/// What the answer to a request for the rest means for what is there.
enum ResumeAnswer: Sendable {
    /// The body is the rest, from that byte on. What the partial file holds behind it has to go first.
    case continueAt(Int64, total: Int64?)
    /// The body is the whole of what there is now.
    case startOver
    /// The partial file is of no use any more, and this body neither: ask again without a range.
    case restartWithoutRange
    /// The partial file is whole: to be continued at `record.received`, with no body.
    case alreadyComplete
    /// The body is about something else, such as why there is no answer. The partial file stays as it is and
    /// can be continued later; the body goes elsewhere.
    case otherBody
    /// The answer contradicts itself. The partial file stays.
    case fail(AFError)

    /// Only for a request that had ``ResumeRecord/requestHeaders``, and any.
    ///
    /// - Parameters:
    ///   - record: What the request was made of.
    ///   - head: The answer to a request with ``ResumeRecord/requestHeaders``.
    static func judge(record: ResumeRecord, head: TransferHead) -> ResumeAnswer {
        switch head.status {
        case 200: .startOver
        case 206: judgePart(record, head)
        case 412: .restartWithoutRange
        case 416: judgeUnsatisfied(record, head)
        default: .otherBody
        }
    }

    private static func judgePart(_ record: ResumeRecord, _ head: TransferHead) -> ResumeAnswer {
        // Several parts in one body, which nobody asked for, have no Content-Range of their own.
        let values = head.fields.values(of: "content-range")
        guard values.count == 1, case .part(let range, let total)? = ContentRange(values[0]) else {
            return invalid("Content-Range `\(values.joined(separator: ", "))` is no range of bytes")
        }
        guard !isMultipart(head) else { return invalid("several parts instead of one") }
        guard !head.isEncoded else { return invalid("a part of an encoded body, which was not asked for") }
        guard range.lowerBound == record.offset else {
            return invalid("Content-Range `\(values[0])` instead of byte \(record.offset) and on")
        }
        if let length = head.singleField("content-length"), Int64(length) != Int64(range.count) {
            return invalid("Content-Range `\(values[0])` with Content-Length `\(length)`")
        }
        if record.validator.isContradicted(by: head) || isContradiction(record.total, total) {
            return .restartWithoutRange
        }
        return .continueAt(range.lowerBound, total: total ?? record.total)
    }

    /// With `If-Range`, a 416 is of the version that was asked for, since any other would have come whole.
    private static func judgeUnsatisfied(_ record: ResumeRecord, _ head: TransferHead) -> ResumeAnswer {
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

    private static func invalid(_ text: String) -> ResumeAnswer {
        .fail(.downloadResumeFailed(reason: .rangeAnswerInvalid(text)))
    }
}
