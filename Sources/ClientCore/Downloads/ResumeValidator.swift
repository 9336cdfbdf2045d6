internal import NetwatchTransport

/// Identifies a version of a resource byte by byte, so that the remaining bytes of that version can be requested with
/// `If-Range` (RFC 9110 §13.1.5).
enum ResumeValidator: Hashable, Sendable {
    /// A strong entity tag, including its quotation marks.
    case entityTag(String)
    /// A modification date that identifies a single version.
    case lastModified(String)

    /// The minimum age of a version at the time of its response, in seconds, for its date to be a strong validator.
    ///
    /// RFC 9110 §8.8.2.2 requires one second if the clocks agree, or a difference that is large enough for clock
    /// differences not to matter. RFC 7232 named one minute.
    static let minimumAge: Int64 = 60

    /// Creates the validator of a response. If there is an entity tag, even a weak one, the date must not be used.
    /// Returns `nil` if there is no strong validator.
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

    /// Returns `nil` if the tag is weak or invalid, so that nothing else can get into a header field.
    init?(entityTag: String) {
        let bytes = Array(entityTag.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy(Self.isTagCharacter)
        else { return nil }
        self = .entityTag(entityTag)
    }

    /// Returns `nil` if the text is not a date. Whether the date is strong was decided when the response arrived.
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

    /// Returns whether a response is of another version. A response without a validator counts as the same version,
    /// because only the rest of this version was requested.
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
