internal import Foundation

extension ResumeRecord: Codable {
    private enum CodingKeys: String, CodingKey {
        case version, method, url, entityTag, lastModified, totalBytes, receivedBytes, syncedBytes, bootID
        case partialFile, created, updated
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(Self.currentVersion, forKey: .version)
        try values.encode("GET", forKey: .method)
        try values.encode(url.absoluteString, forKey: .url)
        try values.encodeIfPresent(validator.entityTag, forKey: .entityTag)
        try values.encodeIfPresent(validator.lastModified, forKey: .lastModified)
        try values.encodeIfPresent(total, forKey: .totalBytes)
        try values.encode(received, forKey: .receivedBytes)
        try values.encode(synced, forKey: .syncedBytes)
        try values.encode(bootID, forKey: .bootID)
        try values.encode(partialFile, forKey: .partialFile)
        try values.encode(created.formatted(.iso8601), forKey: .created)
        try values.encode(updated.formatted(.iso8601), forKey: .updated)
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        try Self.check(values)
        self.init(
            url: try Self.url(values),
            validator: try Self.validator(values),
            total: try values.decodeIfPresent(Int64.self, forKey: .totalBytes),
            received: try values.decode(Int64.self, forKey: .receivedBytes),
            synced: try values.decode(Int64.self, forKey: .syncedBytes),
            bootID: try values.decode(String.self, forKey: .bootID),
            partialFile: try values.decode(String.self, forKey: .partialFile),
            created: try Self.date(values, .created),
            updated: try Self.date(values, .updated)
        )
        guard 0...received ~= synced, received <= total ?? .max else {
            throw Unreadable("syncedBytes, receivedBytes and totalBytes are not in ascending order")
        }
        guard partialFile.hasPrefix("/"), !partialFile.utf8.contains(0) else {
            throw Unreadable("partialFile `\(partialFile)` is not an absolute path")
        }
    }

    private static func check(_ values: KeyedDecodingContainer<CodingKeys>) throws {
        let version = try values.decode(Int.self, forKey: .version)
        guard version == currentVersion else {
            throw Unreadable("version \(version) is not supported; only \(currentVersion) is accepted")
        }
        let method = try values.decode(String.self, forKey: .method)
        guard method == "GET" else {
            throw Unreadable("method `\(method)` is not supported; only GET is accepted")
        }
        for key in [CodingKeys.receivedBytes, .syncedBytes] {
            guard try values.decode(Int64.self, forKey: key) >= 0 else {
                throw Unreadable("\(key.stringValue) is negative")
            }
        }
    }

    private static func url(_ values: KeyedDecodingContainer<CodingKeys>) throws -> URL {
        let text = try values.decode(String.self, forKey: .url)
        guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()),
            url.host?.isEmpty == false
        else {
            let shown = RedactedURL.text(ofUnchecked: text)
            throw Unreadable("url `\(shown)` is not an http or https URL with a host")
        }
        return url
    }

    private static func date(_ values: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys) throws -> Date {
        let text = try values.decode(String.self, forKey: key)
        if let date = try? Date(text, strategy: .iso8601) { return date }
        throw Unreadable("\(key.stringValue) `\(text)` is not an ISO 8601 date")
    }

    private static func validator(_ values: KeyedDecodingContainer<CodingKeys>) throws -> ResumeValidator {
        let tag = try values.decodeIfPresent(String.self, forKey: .entityTag)
        let date = try values.decodeIfPresent(String.self, forKey: .lastModified)
        if let tag, ResumeValidator(entityTag: tag, lastModified: nil) == nil {
            throw Unreadable("entityTag `\(tag)` is not a strong entity tag")
        }
        if let validator = ResumeValidator(entityTag: tag, lastModified: date) { return validator }
        guard let date else { throw Unreadable("`entityTag` or `lastModified` is missing") }
        throw Unreadable("lastModified `\(date)` is not an HTTP date")
    }
}

extension ResumeRecord {
    private struct Unreadable: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    /// Decodes a record from JSON that ``data`` has returned.
    ///
    /// - Throws: ``AFError/DownloadResumeFailureReason/resumeDataInvalid(_:)`` with a description of the error.
    init(data: Data) throws {
        guard data.count <= Self.maximumBytes else {
            throw Self.invalid("\(data.count) bytes; at most \(Self.maximumBytes) are accepted")
        }
        do {
            self = try JSONDecoder().decode(ResumeRecord.self, from: data)
        } catch let error as Unreadable {
            throw Self.invalid(error.text)
        } catch let error as DecodingError {
            throw Self.invalid(error.message)
        }
    }

    /// The record as JSON; `nil` if it is too long to be decoded again.
    var data: Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self), data.count <= Self.maximumBytes else { return nil }
        return data
    }

    private static func invalid(_ text: String) -> AFError {
        AFError.downloadResumeFailed(reason: .resumeDataInvalid(text))
    }
}

extension DecodingError {
    fileprivate var message: String {
        switch self {
        case .keyNotFound(let key, _): "`\(key.stringValue)` is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.isEmpty
                ? "not a JSON object"
                : "`\(context.codingPath.map(\.stringValue).joined(separator: "."))` has the wrong type"
        @unknown default: "not a resume record"
        }
    }
}
