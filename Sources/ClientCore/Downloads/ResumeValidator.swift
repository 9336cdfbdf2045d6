internal import NetwatchTransport

/// What tells two versions of a resource apart, byte by byte, so that a server can be asked for the rest of
/// one: `If-Range` of RFC 9110 §13.1.5.
enum ResumeValidator: Hashable, Sendable {
    /// A strong entity tag, with its quotation marks.
    case entityTag(String)
    /// A modification date that cannot stand for two versions.
    case lastModified(String)

    /// How much older than its response a version has to be before its date tells it from the next one.
    ///
    /// RFC 9110 §8.8.2.2 asks for a second and for clocks that agree, or for a difference large enough that
    /// it does not matter whether they do. A minute was RFC 7232's figure for that.
    static let minimumAge: Int64 = 60

    /// The validator of a response; the entity tag where there is one, also a weak one, because a date must
    /// then not be used. `nil` when none is strong.
    init?(_ head: TransferHead) {
        if !head.fields.values(of: "etag").isEmpty {
            guard let tag = head.singleField("etag") else { return nil }
            self.init(entityTag: tag)
            return
        }
        guard let text = head.singleField("last-modified"), let modified = HTTPDate.seconds(text),
            let now = head.singleField("date").flatMap(HTTPDate.seconds), now - modified >= Self.minimumAge
        else { return nil }
        self = .lastModified(text)
    }

    /// `nil` when the tag is weak or no tag, so that nothing else gets into a header.
    init?(entityTag: String) {
        let bytes = Array(entityTag.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy(Self.isTagCharacter)
        else { return nil }
        self = .entityTag(entityTag)
    }

    /// `nil` when the text is no date. Whether the date is strong was decided when there was a response.
    init?(lastModified: String) {
        guard HTTPDate.seconds(lastModified) != nil else { return nil }
        self = .lastModified(lastModified)
    }

    /// The value of `If-Range`.
    var fieldValue: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }

    /// Whether a response is of another version. One that does not say is of the same: the server was asked
    /// for the rest of this version only.
    func isContradicted(by head: TransferHead) -> Bool {
        switch self {
        case .entityTag(let tag): head.fields.values(of: "etag").contains { $0 != tag }
        case .lastModified(let date): head.fields.values(of: "last-modified").contains { $0 != date }
        }
    }

    /// `etagc` of RFC 9110 §8.8.3.
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != UInt8(ascii: "\"") && byte != 0x7f
    }
}
