/// Text that represents arbitrary bytes, of a header field or of an argument, so that they can be used unchanged.
///
/// Bytes that are valid UTF-8 without private characters are represented by their text. Otherwise, each byte from 0x80
/// is represented by a private character, U+F700 plus the byte.
///
/// Different bytes have different texts, because ``encode(_:)`` is the inverse of ``decode(_:)``:
/// - If the text of the bytes has no private characters, `encode` returns its UTF-8, which are the bytes.
/// - Otherwise, a byte from 0x80 has become a private character, and each character represents one byte. `encode`
///   returns these bytes.
///
/// Each part of such a text represents the corresponding part of the bytes. In the first case, this is the UTF-8 of the
/// part. In the second case, a part without private characters is ASCII.
///
/// A text of the program may contain the same characters and mean them. It is therefore not an exact text, but
/// ``representing(_:)`` makes it one.
package enum ExactText {
    private static let base: UInt32 = 0xf700
    private static let escapes: ClosedRange<UInt32> = 0xf780...0xf7ff
    /// The first byte of each private character in UTF-8.
    private static let leadByte: UInt8 = 0xef

    package static func decode(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), !hasEscapes(text) { return text }
        var text = String.UnicodeScalarView()
        for byte in bytes {
            text.append(byte < 0x80 ? Unicode.Scalar(byte) : Unicode.Scalar(base + UInt32(byte))!)
        }
        return String(text)
    }

    /// Returns the exact text for the UTF-8 of another text.
    package static func representing(_ text: String) -> String { hasEscapes(text) ? decode(text.utf8) : text }

    /// Returns the bytes that the text represents.
    package static func encode(_ text: String) -> [UInt8] {
        guard hasEscapes(text) else { return Array(text.utf8) }
        return text.unicodeScalars.flatMap { scalar in
            escapes.contains(scalar.value) ? [UInt8(scalar.value - base)] : Array(String(scalar).utf8)
        }
    }

    /// Calls `body` with the bytes that the text represents and a zero byte.
    static func withCString<Result>(of text: String, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        guard hasEscapes(text) else { return text.withCString(body) }
        let bytes = (encode(text) + [0]).map(CChar.init(bitPattern:))
        return bytes.withUnsafeBufferPointer { body($0.baseAddress!) }
    }

    /// Returns whether the text has private characters. A text without them represents its UTF-8.
    package static func hasEscapes(_ text: String) -> Bool {
        text.utf8.contains(leadByte) && text.unicodeScalars.contains { escapes.contains($0.value) }
    }
}
