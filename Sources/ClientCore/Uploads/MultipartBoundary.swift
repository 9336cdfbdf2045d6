internal import Foundation
internal import NetwatchTransport

/// What stands between the parts of a form (RFC 2046 §5.1.1).
struct MultipartBoundary {
    private let text: String

    init(_ text: String) {
        self.text = text
    }

    /// `netwatch.boundary.` and 64 bits that nobody can foresee, so that no file is made to contain them.
    static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    static func random(using generator: inout some RandomNumberGenerator) -> String {
        let words = [
            UInt32.random(in: 0...(.max), using: &generator), .random(in: 0...(.max), using: &generator),
        ]
        return "netwatch.boundary." + words.map { String(format: "%08x", $0) }.joined()
    }

    /// Tokens need no quotation marks in the request's `Content-Type`.
    var isValid: Bool { HTTPToken.isValid(text) && text.utf8.count <= 70 }

    // Bytes, not texts: in a text a line break of CR and LF counts as one.

    func opening(ofPart index: Int) -> Data {
        Data((index == 0 ? "--\(text)\r\n" : "\r\n--\(text)\r\n").utf8)
    }

    func closing(afterParts count: Int) -> Data {
        Data((count == 0 ? "--\(text)--\r\n" : "\r\n--\(text)--\r\n").utf8)
    }
}
