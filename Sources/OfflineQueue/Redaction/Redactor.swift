internal import Foundation

/// Replaces the secrets of an attempt by `REDACTED` in everything that is kept of its outcome.
///
/// A server may repeat the request in its response. A user who may use a credential, but not read it, would then find
/// the credential in the stored response.
package struct Redactor: Sendable {
    /// A value that was added to a request.
    struct Secret: Hashable, Sendable {
        let value: String
        /// Whether the value is certainly a secret. An adapter also adds other values, such as a program's version.
        let isCertain: Bool
    }

    /// What is kept of a body.
    struct KeptBody: Equatable, Sendable {
        let bytes: Data
        /// Whether bytes of the body are missing at the end.
        let isTruncated: Bool
        /// Whether the bytes differ from those that the server sent, apart from the missing ones.
        let isChanged: Bool
    }

    /// Replaces nothing.
    package static let none = Redactor([])

    /// The minimum length in bytes of secrets that are replaced in header fields and messages. Shorter ones would occur
    /// in unrelated text.
    private static let minimumLengthInTexts = 4
    /// The minimum length in bytes of secrets that are replaced in bodies. Shorter ones occur in unrelated content.
    /// They could also be found by trial: a request that the server repeats can contain thousands of guesses, and
    /// `REDACTED` would mark the right one.
    static let minimumLengthInBodies = 8
    /// The number of bytes by which escapes and Base64 may lengthen a byte of a form: those of `\u0041`.
    private static let longestEscape = 6
    private static let replacement = Array("REDACTED".utf8)

    /// The maximum length of all secrets in bytes: 32 KiB. The time of a search grows with it, and a server can set cookies
    /// of 200 KiB. If there are more, nothing is kept of texts and bodies.
    private static let mostSecretBytes = 32 << 10

    /// Whether all secrets can be searched for.
    private let isSearchable: Bool
    private let texts: SecretSearch
    private let bodies: SecretSearch
    /// Whether bodies are kept at all.
    private let keepsBodies: Bool

    /// - Parameters:
    ///   - secrets: The secrets. Empty values are ignored.
    ///   - isBodyEncoded: Whether the body has a content coding, such as gzip, so that it cannot be searched.
    init(_ secrets: Set<Secret>, isBodyEncoded: Bool = false) {
        isSearchable = secrets.reduce(0) { $0 + $1.value.utf8.count } <= Self.mostSecretBytes
        let searched = isSearchable ? secrets : []
        func values(atLeast length: Int) -> Set<String> {
            Set(searched.map(\.value).filter { $0.utf8.count >= length })
        }
        texts = SecretSearch(values(atLeast: Self.minimumLengthInTexts))
        bodies = SecretSearch(values(atLeast: Self.minimumLengthInBodies))
        let hasShort = secrets.contains {
            $0.isCertain && 1..<Self.minimumLengthInBodies ~= $0.value.utf8.count
        }
        keepsBodies = isSearchable && !hasShort && !(isBodyEncoded && bodies.longest > 0)
    }

    /// The number of bytes that must be received after the kept part of a body, so that a secret at its end is found.
    var lookahead: Int { bodies.longest * Self.longestEscape }

    /// Returns a text without the secrets.
    func text(_ text: String) -> String {
        guard isSearchable else {
            return text.isEmpty ? "" : String(decoding: Self.replacement, as: UTF8.self)
        }
        guard texts.longest > 0 else { return text }
        let bytes = Array(text.utf8)
        let ranges = texts.ranges(in: bytes)
        return ranges.isEmpty ? text : String(decoding: Self.replaced(ranges, in: bytes[...]), as: UTF8.self)
    }

    /// Returns what is kept of a body: its first bytes without the secrets, or nothing.
    ///
    /// The last ``lookahead`` bytes of a body whose end is missing are not kept, because they may contain the beginning
    /// of a secret. Only that part is cut, whatever it contains: if the cut depended on the content, a user could find
    /// the secret byte by byte.
    ///
    /// - Parameters:
    ///   - body: The received bytes.
    ///   - isTruncated: Whether bytes are missing at the end.
    ///   - limit: The maximum number of bytes to keep.
    func body(_ body: Data, isTruncated: Bool, limit: Int) -> KeptBody {
        guard keepsBodies, !body.isEmpty else {
            let isDropped = !body.isEmpty
            return KeptBody(bytes: Data(), isTruncated: isTruncated || isDropped, isChanged: isDropped)
        }
        guard bodies.longest > 0 else {
            let isCut = isTruncated || body.count > limit
            return KeptBody(bytes: body.prefix(limit), isTruncated: isCut, isChanged: false)
        }
        let searched = Array(body.prefix(limit + lookahead))
        let isCut = isTruncated || searched.count < body.count
        let end = min(limit, isCut ? max(0, searched.count - lookahead) : searched.count)
        let ranges = bodies.ranges(in: searched).filter { $0.lowerBound < end }
        let bytes = ranges.isEmpty ? Array(searched[..<end]) : Self.replaced(ranges, in: searched[..<end])
        return KeptBody(
            bytes: Data(bytes.prefix(limit)),
            isTruncated: isTruncated || end < body.count || bytes.count > limit,
            isChanged: !ranges.isEmpty
        )
    }

    /// Replaces ranges of bytes, which are in order. The last one may begin within the bytes and end after them.
    private static func replaced(_ ranges: [Range<Int>], in bytes: ArraySlice<UInt8>) -> [UInt8] {
        var (result, end): ([UInt8], Int) = ([], bytes.startIndex)
        for range in ranges {
            result += bytes[end..<range.lowerBound]
            result += replacement
            end = min(range.upperBound, bytes.endIndex)
        }
        return result + bytes[end...]
    }
}
