internal import NetwatchTransport

/// A strong validator: two responses with the same validator have the same bytes. If a request has this validator in
/// `If-Range`, the server sends the remaining bytes only if it still has this version. Otherwise it sends the whole
/// current version (RFC 9110 §13.1.5).
enum ResumeValidator: Hashable, Sendable {
    /// A strong entity tag, including its quotation marks.
    case entityTag(String)
    /// A value of `Last-Modified` that identifies a single version.
    case lastModified(String)

    /// The minimum number of seconds by which `Last-Modified` must precede `Date` to be a strong validator.
    ///
    /// A resource that was modified more recently could change again within the same second. RFC 9110 §8.8.2.2
    /// requires at least one second, and more if the clocks may differ. The earlier RFC 7232 required one minute.
    static let minimumAge: Int64 = 60

    /// Creates the validator of a response. Returns `nil` if the response has no strong validator.
    ///
    /// `Last-Modified` is used only if there is no entity tag. With a weak entity tag, the result is `nil`. An obsolete
    /// form of `Last-Modified` is not used either: `If-Range` must repeat the exact text, but a sender must not use an
    /// obsolete form (RFC 9110 §5.6.7). Such a download starts over.
    init?(_ head: TransferHead) {
        if !head.fields.values(of: "etag").isEmpty {
            guard let tag = head.singleField("etag") else { return nil }
            self.init(entityTag: tag)
            return
        }
        guard let text = head.singleField("last-modified"), let modified = Self.seconds(text),
            let now = head.singleField("date").flatMap(HTTPDate.seconds), now - modified >= Self.minimumAge
        else { return nil }
        self = .lastModified(text)
    }

    /// Creates a validator from an entity tag. Returns `nil` if the tag is weak or invalid, so that a forged record
    /// cannot inject text into a header field.
    init?(entityTag: String) {
        let bytes = Array(entityTag.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy(Self.isTagCharacter)
        else { return nil }
        self = .entityTag(entityTag)
    }

    /// Creates a validator from a value of `Last-Modified` in a record. Returns `nil` if the text is not a date, so
    /// that a forged record cannot inject text into a header field. When the response arrived, ``init(_:)`` checked
    /// that the date is a strong validator.
    init?(lastModified: String) {
        guard Self.seconds(lastModified) != nil else { return nil }
        self = .lastModified(lastModified)
    }

    /// The value of `If-Range`.
    var fieldValue: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }

    /// Returns whether a response has the validator of another version. A response without a validator counts as the
    /// same version, because `If-Range` requested only this version.
    func isContradicted(by head: TransferHead) -> Bool {
        switch self {
        case .entityTag(let tag): head.fields.values(of: "etag").contains { $0 != tag }
        case .lastModified(let date): head.fields.values(of: "last-modified").contains { $0 != date }
        }
    }

    private static func seconds(_ lastModified: String) -> Int64? {
        HTTPDate.isSenderForm(lastModified) ? HTTPDate.seconds(lastModified) : nil
    }

    /// Whether the byte is allowed in an entity tag (`etagc`, RFC 9110 §8.8.3).
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != UInt8(ascii: "\"") && byte != 0x7f
    }
}
