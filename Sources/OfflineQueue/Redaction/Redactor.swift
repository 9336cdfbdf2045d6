internal import CNetwatchLinux
internal import Foundation
internal import Glibc

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

/// Finds secrets in a text: as they are, in Base64, and with escapes.
///
/// The text is read once for all short forms of all secrets and once for each long one, and as often again for each kind
/// of ``Escape`` that it contains, and for each pair of them.
struct SecretSearch: Sendable {
    /// The number of bytes at the beginning of a form by which forms are looked up, and the minimum length of a form.
    private static let keyLength = 4
    /// The length in bytes from which a form is searched for alone, in a time that depends only on the length of the
    /// text. A server chooses its cookies, and could otherwise make all of them almost match at each position of a text.
    private static let longForm = 32

    /// The short forms by their first bytes, the longest first.
    private var forms: [UInt32: [[UInt8]]] = [:]
    private var longForms: [[UInt8]] = []
    /// For each byte value, the positions of a key at which a form has it, as bits: most positions of a text need no
    /// look-up.
    private var keyBytes = [UInt8](repeating: 0, count: 256)
    private let escapes: [Escape]
    /// The length of the longest form in bytes; 0 without secrets.
    private(set) var longest = 0

    /// - Parameter secrets: The secrets. Those of less than 4 bytes are not found.
    init(_ secrets: Set<String>) {
        let hasSpace = secrets.contains { $0.utf8.contains(UInt8(ascii: " ")) }
        escapes = Escape.allCases.filter { $0 != .plus || hasSpace }
        for secret in secrets where secret.utf8.count >= Self.keyLength {
            for form in SecretForms.of(Array(secret.utf8)) where form.count >= Self.keyLength { add(form) }
        }
        for key in forms.keys { forms[key]!.sort { $0.count > $1.count } }
    }

    private mutating func add(_ form: [UInt8]) {
        longest = max(longest, form.count)
        guard form.count < Self.longForm else { return longForms.append(form) }
        forms[Self.key(form), default: []].append(form)
        for position in 0..<Self.keyLength { keyBytes[Int(form[position])] |= 1 << UInt8(position) }
    }

    /// Returns the ranges of a text that contain secrets, in order. They do not overlap.
    func ranges(in text: [UInt8]) -> [Range<Int>] {
        guard longest > 0 else { return [] }
        let text = UnescapedText(text)
        var found = matches(in: text)
        // A server may repeat a URL in JSON, or a query within the query of another URL, so escapes may be nested.
        for escape in escapes {
            guard let once = text.undoing(escape) else { continue }
            found += matches(in: once)
            for inner in escapes {
                if let twice = once.undoing(inner) { found += matches(in: twice) }
            }
        }
        return Self.union(of: found)
    }

    private func matches(in text: UnescapedText) -> [Range<Int>] {
        text.bytes.withUnsafeBufferPointer { bytes in
            guard bytes.count >= Self.keyLength else { return [] }
            var found: [Range<Int>] = []
            for start in 0...bytes.count - Self.keyLength {
                guard let length = lengthOfForm(at: start, in: bytes) else { continue }
                found.append(text.original(of: start..<start + length))
            }
            for form in longForms {
                found += Self.matches(of: form, in: bytes).map { text.original(of: $0) }
            }
            return found
        }
    }

    private static func matches(of form: [UInt8], in bytes: UnsafeBufferPointer<UInt8>) -> [Range<Int>] {
        guard let base = bytes.baseAddress else { return [] }
        var found: [Range<Int>] = []
        var start = 0
        while start + form.count <= bytes.count,
            let match = memmem(base + start, UInt(bytes.count - start), form, UInt(form.count))
        {
            let place = UnsafeRawPointer(match) - UnsafeRawPointer(base)
            found.append(place..<place + form.count)
            start = place + form.count
        }
        return found
    }

    /// Returns the length of the longest short form at a position; `nil` if there is none.
    private func lengthOfForm(at start: Int, in bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        guard
            (0..<Self.keyLength).allSatisfy({ keyBytes[Int(bytes[start + $0])] & 1 << UInt8($0) != 0 }),
            let candidates = forms[Self.key(bytes[start...])]
        else { return nil }
        return candidates.first { form in
            form.count <= bytes.count - start
                && form.withUnsafeBytes { memcmp(bytes.baseAddress! + start, $0.baseAddress!, $0.count) == 0 }
        }?.count
    }

    /// Returns the first bytes as a number.
    private static func key(_ bytes: some Collection<UInt8>) -> UInt32 {
        bytes.prefix(keyLength).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Returns the ranges in order, with those that overlap joined.
    private static func union(of ranges: [Range<Int>]) -> [Range<Int>] {
        var joined: [Range<Int>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = joined.last, range.lowerBound < last.upperBound {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }
}

/// The byte sequences by which a secret is found: the secret itself, and its Base64 forms.
enum SecretForms {
    /// Returns the secret and what Base64 makes of it at each of the three positions in a group of three bytes, in the
    /// standard and in the URL-safe alphabet (RFC 4648 §4 and §5).
    static func of(_ secret: [UInt8]) -> Set<[UInt8]> {
        let encoded = (0..<3).map { base64(secret, after: $0) }
        return Set([secret] + encoded + encoded.map(urlSafe))
    }

    /// Returns the Base64 characters that depend only on the secret.
    ///
    /// A character encodes 6 bits. Those at the ends also depend on the bytes around the secret, so they are left out,
    /// and with them the padding.
    ///
    /// - Parameter offset: The number of bytes before the secret in its first group, 0 to 2.
    private static func base64(_ secret: [UInt8], after offset: Int) -> [UInt8] {
        let bytes = [UInt8](repeating: 0, count: offset) + secret
        let text = Array(Data(bytes).base64EncodedString().utf8)
        return Array(text[(offset * 8 + 5) / 6..<bytes.count * 8 / 6])
    }

    private static func urlSafe(_ base64: [UInt8]) -> [UInt8] {
        base64.map { character in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: character
            }
        }
    }
}
