internal import Foundation
internal import NetwatchTransport

/// The delimiter between the parts of a form (RFC 2046 §5.1.1).
struct MultipartBoundary {
    private let text: String

    init(_ text: String) {
        self.text = text
    }

    /// Returns the text of a boundary with 64 random bits. Because they are unpredictable, no file can be crafted to
    /// contain the boundary.
    static func random() -> String { text(.random(in: 0...(.max))) }

    /// Returns `netwatch.boundary.` and 16 hexadecimal digits.
    static func text(_ bits: UInt64) -> String { String(format: "netwatch.boundary.%016llx", bits) }

    /// Whether the boundary is a token of at most 70 characters. Tokens need no quotation marks in the request's
    /// `Content-Type`.
    var isValid: Bool { HTTPToken.isValid(text) && text.utf8.count <= 70 }

    // These functions return data, because `count` of a string would count CR LF as one character.

    func opening(ofPart index: Int) -> Data {
        Data((index == 0 ? "--\(text)\r\n" : "\r\n--\(text)\r\n").utf8)
    }

    func closing(afterParts count: Int) -> Data {
        Data((count == 0 ? "--\(text)--\r\n" : "\r\n--\(text)--\r\n").utf8)
    }
}
