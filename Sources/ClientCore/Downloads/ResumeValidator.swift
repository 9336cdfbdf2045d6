internal import NetwatchTransport

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
