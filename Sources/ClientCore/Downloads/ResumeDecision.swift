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

/// The value of a `Content-Range` field (RFC 9110 §14.4).
enum ContentRange: Hashable, Sendable {
    /// `bytes 2-5/10`; the total is `nil` for `*`.
    case part(ClosedRange<Int64>, total: Int64?)
    /// `bytes */10`, in a 416 response to a request for bytes that do not exist.
    case unsatisfied(total: Int64)

    /// Parses a value. Returns `nil` if the text has neither of these forms, or if the range contradicts the total.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let total = Self.number(halves[1])
        guard total != nil || halves[1] == "*" else { return nil }
        if halves[0] == "*" {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
        } else {
            guard let range = Self.range(halves[0]), total.map({ range.upperBound < $0 }) ?? true else {
                return nil
            }
            self = .part(range, total: total)
        }
    }

    private static func range(_ text: Substring) -> ClosedRange<Int64>? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = number(ends[0]), let last = number(ends[1]), first <= last else {
            return nil
        }
        return first...last
    }

    /// Parses 1 to 18 digits, which cannot overflow. `Int64.init` alone would accept a sign.
    private static func number(_ text: Substring) -> Int64? {
        guard 1...18 ~= text.utf8.count, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return Int64(text)
    }
}

extension TransferHead {
    /// The number of bytes in the body of a 206 with a single range and without an encoding; `nil` for other responses.
    var partLength: Int64? {
        guard status == 206, !isEncoded,
            case .part(let range, _)? = singleField("content-range").flatMap(ContentRange.init)
        else { return nil }
        return Int64(range.count)
    }
}

/// The validators of a version of a resource. At least one of them is strong: two responses with the same strong
/// validator have the same bytes. If a request has this validator in `If-Range`, the server sends the remaining bytes
/// only if it still has this version. Otherwise it sends the whole current version (RFC 9110 §13.1.5).
struct ResumeValidator: Hashable, Sendable {
    /// The strong entity tag as an ``ExactText``, including its quotation marks if the server sent any; `nil` if the
    /// server sent none.
    let entityTag: String?
    /// The value of `Last-Modified`; `nil` if the server sent none. Without an entity tag it identifies a single
    /// version.
    let lastModified: String?

    /// The minimum number of seconds by which `Last-Modified` must precede `Date` to be a strong validator.
    ///
    /// A resource that was modified more recently could change again within the same second. RFC 9110 §8.8.2.2
    /// requires at least one second, and more if the clocks may differ. The earlier RFC 7232 required one minute.
    static let minimumAge: Int64 = 60

    /// Creates the validators of a response. Returns `nil` if the response has no strong validator.
    ///
    /// `Last-Modified` is used for `If-Range` only if there is no entity tag. With a weak entity tag, the result is
    /// `nil`. An obsolete form of `Last-Modified` is not used either: `If-Range` must repeat the exact text, but a
    /// sender must not use an obsolete form (RFC 9110 §5.6.7). Such a download starts over.
    init?(_ head: TransferHead) {
        let date = head.singleField("last-modified").flatMap { Self.seconds($0) == nil ? nil : $0 }
        let tags = head.fields.exactValues(of: "etag")
        if let tag = tags.first {
            guard tags.allSatisfy({ Self.isSame($0, tag) }), Self.isStrong(tag) else { return nil }
            (entityTag, lastModified) = (tag, date)
            return
        }
        guard let date, let modified = Self.seconds(date),
            let now = head.singleField("date").flatMap(HTTPDate.seconds), now - modified >= Self.minimumAge
        else { return nil }
        (entityTag, lastModified) = (nil, date)
    }

    /// Creates the validators of a record. Returns `nil` if there is none, if the tag is weak or invalid, or if the
    /// date is not an HTTP date, so that a forged record cannot inject text into a header field. When the response
    /// arrived, ``init(_:)`` checked that one of them is strong.
    init?(entityTag: String?, lastModified: String?) {
        guard entityTag != nil || lastModified != nil, entityTag.map(Self.isStrong) ?? true,
            lastModified.map({ Self.seconds($0) != nil }) ?? true
        else { return nil }
        (self.entityTag, self.lastModified) = (entityTag, lastModified)
    }

    /// The value of `If-Range`.
    var fieldValue: String { entityTag ?? lastModified ?? "" }

    /// Returns whether a response has a validator of another version.
    func isContradicted(by head: TransferHead) -> Bool {
        comparisons(with: head).contains(false)
    }

    /// Returns whether a response has one of the validators, and none of another version.
    func isConfirmed(by head: TransferHead) -> Bool {
        let comparisons = comparisons(with: head)
        return comparisons.contains(true) && !comparisons.contains(false)
    }

    /// Compares the validators that both this version and the response have, byte for byte.
    private func comparisons(with head: TransferHead) -> [Bool] {
        [("etag", entityTag), ("last-modified", lastModified)].flatMap { name, value in
            value.map { value in head.fields.exactValues(of: name).map { Self.isSame($0, value) } } ?? []
        }
    }

    /// Compares byte for byte. `==` would ignore different encodings of the same character.
    private static func isSame(_ one: String, _ other: String) -> Bool {
        one.utf8.elementsEqual(other.utf8)
    }

    /// Returns whether the text is a strong entity tag, with or without quotation marks.
    ///
    /// Some servers send tags without quotation marks, and compare them byte for byte. Other servers take such an
    /// `If-Range` for an invalid date, and send the whole version (RFC 9110 §13.1.5). A date is not accepted as a tag,
    /// because it contains spaces.
    private static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        let mark = UInt8(ascii: "\"")
        let isQuoted = bytes.count >= 2 && bytes.first == mark && bytes.last == mark
        let opaque = isQuoted ? bytes.dropFirst().dropLast() : bytes[...]
        let isStrong = isQuoted || !opaque.isEmpty && !opaque.starts(with: "W/".utf8)
        return isStrong && opaque.allSatisfy(isTagCharacter)
    }

    private static func seconds(_ lastModified: String) -> Int64? {
        HTTPDate.isSenderForm(lastModified) ? HTTPDate.seconds(lastModified) : nil
    }

    /// Whether the byte is allowed in an entity tag (`etagc`, RFC 9110 §8.8.3).
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != UInt8(ascii: "\"") && byte != 0x7f
    }
}
