/// A parser that assembles the head of a response from the header lines that libcurl delivers one by one.
///
/// It reports only the final head: interim heads (1xx) are skipped. Before a request is sent again, ``restart()``
/// prepares for the head of the next response.
struct HeadParser {
    enum Step: Equatable {
        /// The head is not complete yet.
        case more
        /// The head is complete.
        case head(TransferHead)
        /// The server switched to another protocol (status 101) without being asked to.
        case switched
        /// The first line is not a status line.
        case invalidStatusLine
        /// The final head has `Content-Length` fields with different values, so the end of the body is ambiguous (RFC
        /// 9112 §6.3).
        case ambiguousLength
        /// The final head names a transfer coding other than `chunked` and `identity` for a body, although no request
        /// offers one (RFC 9112 §7.4). The value is the `Transfer-Encoding`.
        case unsupportedTransferCoding(String)
        /// The heads of the transfer together exceed ``HeadParser/maximumBytes``.
        case tooLarge
    }

    /// The maximum number of header bytes of one transfer. Interim heads, the final head and trailers count.
    ///
    /// Debian's libcurl fails at 300 KiB, with the code that it also uses for a reset connection. The lower limit here
    /// lets netwatch report the real cause.
    static let maximumBytes = 256 * 1024

    private let method: String
    private var bytes = 0
    private var status = 0
    private var version = ""
    private var fields = HeaderFields()
    /// Whether the status line of the current head was received. Only the first line of a head is a status line, even
    /// if other lines have the same form (RFC 9112 §2.1).
    private var isInHead = false
    private(set) var isComplete = false
    /// Whether at least one line of the response was received.
    private(set) var hasBegun = false

    /// Creates a parser for the response to a request with this method. A response to HEAD has no body.
    init(method: String) {
        self.method = method
    }

    /// Prepares for the response to a request that is sent again. The bytes received so far still count towards
    /// ``maximumBytes``.
    mutating func restart() {
        let bytes = bytes
        self = HeadParser(method: method)
        self.bytes = bytes
    }

    /// Parses one line, including its line break.
    mutating func consume(_ line: UnsafeRawBufferPointer) -> Step {
        bytes += line.count
        hasBegun = true
        guard bytes <= Self.maximumBytes else { return .tooLarge }
        // Lines after the final head are trailers of a chunked body.
        guard !isComplete else { return .more }
        let text = Self.trimmed(line[...])
        // A line of only spaces and tabs is an empty folded line, not the end of the head.
        if text.isEmpty { return line.first == 0x20 || line.first == 0x09 ? .more : endHead() }
        guard isInHead else { return beginHead(text) ? .more : .invalidStatusLine }
        addHeader(text)
        return .more
    }

    /// Parses a status line (RFC 9112 §4). Returns `false` if the line is none. libcurl also accepts other lines, such
    /// as `http/1.1 404`, which it takes for a 200.
    private mutating func beginHead(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
        let version = line.prefix { $0 != 0x20 }
        let digits = line[version.endIndex...].drop { $0 == 0x20 }.prefix { $0 != 0x20 }
        guard version.starts(with: "HTTP/".utf8), digits.count == 3,
            let status = Int(String(decoding: digits, as: UTF8.self)), status >= 100
        else { return false }
        isInHead = true
        self.version = String(decoding: version, as: UTF8.self)
        self.status = status
        fields = HeaderFields()
        fields.reserveCapacity()
        return true
    }

    private mutating func addHeader(_ line: Slice<UnsafeRawBufferPointer>) {
        // An obsolete folded line (RFC 9112 §5.2) continues the value of the previous field.
        if line.startIndex != line.base.startIndex, fields.continueLast(line) { return }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
        fields.append(
            name: Self.trimmed(line[..<colon]),
            value: Self.trimmed(line[line.index(after: colon)...])
        )
    }

    private mutating func endHead() -> Step {
        isInHead = false
        guard status >= 200 else { return status == 101 ? .switched : .more }
        // RFC 9110 §8.6 treats a list in one field like several fields.
        guard fields.hasEqualListElements(of: "Content-Length") else { return .ambiguousLength }
        if let codings = refusedTransferCodings { return .unsupportedTransferCoding(codings) }
        isComplete = true
        return .head(TransferHead(status: status, version: version, fields: fields))
    }

    /// The value of `Transfer-Encoding` if the response has a body with a coding other than `chunked` and `identity`;
    /// `nil` otherwise.
    ///
    /// libcurl would decode such a body even though the request has no `TE` field, and libcurl 7.88.1 takes a truncated
    /// one for a complete one. Some servers write `identity`, a name from RFC 2616 for no coding. Without a body, the
    /// field only says what the server would do with one (RFC 9112 §6.1).
    private var refusedTransferCodings: String? {
        guard mayHaveBody else { return nil }
        let names = fields.listElements(of: "Transfer-Encoding")
            .map { String(decoding: $0, as: UTF8.self).lowercased() }
        guard names.contains(where: { !["", "chunked", "identity"].contains($0) }) else { return nil }
        return fields.values(of: "Transfer-Encoding").joined(separator: ", ")
    }

    /// Whether a response with this method and status can have a body (RFC 9112 §6.3).
    private var mayHaveBody: Bool { method != "HEAD" && status != 204 && status != 304 }

    /// The number of bytes of the body, before decoding; `nil` if there is no final head, or if it does not determine
    /// the number. `Transfer-Encoding` overrides `Content-Length` (RFC 9112 §6.3).
    var bodyLength: Int64? {
        guard isComplete else { return nil }
        guard mayHaveBody else { return 0 }
        guard fields.listElements(of: "Transfer-Encoding").isEmpty,
            let digits = fields.listElements(of: "Content-Length").first,
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self))
    }

    private static func trimmed(_ line: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d || $0 == 0x0a }
        guard let first = line.firstIndex(where: { !isBlank($0) }) else { return line[line.endIndex...] }
        return line[first...line.lastIndex { !isBlank($0) }!]
    }
}

/// The header fields of a response, stored as bytes in the order received.
///
/// Strings are created on access, because most fields are never read.
package struct HeaderFields: Hashable, Sendable {
    /// The position of a field in `bytes`. Its name begins at `name`, and its value at `value`.
    private struct Place: Hashable {
        let name: Int
        let value: Int
        var end: Int
    }

    private var bytes: [UInt8] = []
    private var places: [Place] = []

    package init(_ headers: [TransferRequest.Header] = []) {
        for header in headers { append(name: Array(header.name.utf8), value: Array(header.value.utf8)) }
    }

    /// All fields in the order received. Names keep the server's spelling.
    package var all: [TransferRequest.Header] {
        places.map { .init(text($0.name..<$0.value), text($0.value..<$0.end)) }
    }

    /// Returns the values of all fields with this name, in the order received. The comparison ignores case.
    package func values(of name: String) -> [String] {
        places.filter { isNamed(name, $0) }.map { text($0.value..<$0.end) }
    }

    /// Returns the values of all fields with this name as ``ExactText``, in the order received. The values can be
    /// compared byte for byte and sent again unchanged.
    package func exactValues(of name: String) -> [String] {
        places.filter { isNamed(name, $0) }.map { ExactText.decode(bytes[$0.value..<$0.end]) }
    }

    /// Returns the elements of the comma-separated list that all fields with this name form, in the order received,
    /// without the spaces and tabs around them (RFC 9110 §5.6.1). Empty elements are included.
    func listElements(of name: String) -> [ArraySlice<UInt8>] {
        var elements: [ArraySlice<UInt8>] = []
        forEachListElement(of: name) { elements.append($0) }
        return elements
    }

    /// Returns whether the elements that ``listElements(of:)`` returns are all equal.
    func hasEqualListElements(of name: String) -> Bool {
        var first: ArraySlice<UInt8>?
        var areEqual = true
        forEachListElement(of: name) { element in
            if let first { areEqual = areEqual && element == first } else { first = element }
        }
        return areEqual
    }

    private func forEachListElement(of name: String, _ body: (ArraySlice<UInt8>) -> Void) {
        for place in places where isNamed(name, place) {
            var rest = bytes[place.value..<place.end]
            while let comma = rest.firstIndex(of: UInt8(ascii: ",")) {
                body(Self.trimmed(rest[..<comma]))
                rest = rest[(comma + 1)...]
            }
            body(Self.trimmed(rest))
        }
    }

    private static func trimmed(_ element: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let last = element.lastIndex(where: { !isBlank($0) }) else { return [] }
        return element[...last].drop(while: isBlank)
    }

    /// Reserves capacity for the head of a typical response.
    mutating func reserveCapacity() {
        bytes.reserveCapacity(512)
        places.reserveCapacity(16)
    }

    mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        let start = bytes.count
        bytes += name
        let middle = bytes.count
        bytes += value
        places.append(Place(name: start, value: middle, end: bytes.count))
    }

    /// Appends a space and the text to the value of the last field. Returns false if there is no field.
    mutating func continueLast(_ text: some Collection<UInt8>) -> Bool {
        guard !places.isEmpty else { return false }
        bytes.append(UInt8(ascii: " "))
        bytes += text
        places[places.endIndex - 1].end = bytes.count
        return true
    }

    private func isNamed(_ name: String, _ place: Place) -> Bool {
        place.value - place.name == name.utf8.count
            && zip(bytes[place.name..<place.value], name.utf8).allSatisfy {
                $0.lowercasedASCII == $1.lowercasedASCII
            }
    }

    /// Decodes a name or value. Bytes that are not valid UTF-8 are decoded as Latin-1, which preserves every byte.
    private func text(_ range: Range<Int>) -> String {
        let bytes = bytes[range]
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension StringProtocol {
    /// The elements of a comma-separated list (RFC 9110 §5.6.1), without the spaces and tabs around them. Empty
    /// elements are included.
    var listElements: [String] {
        split(separator: ",", omittingEmptySubsequences: false).map { element in
            let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
            guard let first = element.firstIndex(where: { !isBlank($0) }),
                let last = element.lastIndex(where: { !isBlank($0) })
            else { return "" }
            return String(element[first...last])
        }
    }
}

extension UInt8 {
    /// The byte in lower case. Field names are case-insensitive (RFC 9110 §5.1).
    var lowercasedASCII: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}

/// Formatting of a peer's bytes for messages. Printable ASCII is unchanged; everything else is escaped.
enum EscapedBytes {
    /// The maximum number of bytes shown.
    static let limit = 64

    /// Returns the first ``limit`` bytes in quotes, such as `"SSH-2.0-OpenSSH_9.2p1\r\n"`. If there are more bytes, `…`
    /// follows.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        let shown = bytes.prefix(limit).map(escaped).joined()
        return "\"\(shown)\"" + (bytes.count > limit ? "…" : "")
    }

    private static func escaped(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "\r"): return "\\r"
        case UInt8(ascii: "\n"): return "\\n"
        case UInt8(ascii: "\t"): return "\\t"
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): return "\\" + String(UnicodeScalar(byte))
        case 0x20..<0x7f: return String(UnicodeScalar(byte))
        default:
            let digits = String(byte, radix: 16)
            return "\\x" + (byte < 16 ? "0" : "") + digits
        }
    }
}
