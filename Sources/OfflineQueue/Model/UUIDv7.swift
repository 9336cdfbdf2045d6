internal import Foundation

/// Generates ids that sort by the millisecond of their creation (RFC 9562 §5.7).
///
/// Their order is only a convenience for readers. The queue orders requests by the store's sequence numbers.
package enum UUIDv7 {
    package static func make(at moment: Timestamp = .now) -> String {
        var generator = SystemRandomNumberGenerator()
        let time = UInt64(bitPattern: moment.milliseconds) << 16
        let random: UInt64 = generator.next()
        return UUIDText.make(high: time | 0x7000 | random & 0x0fff, low: generator.next())
    }
}

/// Generates random ids (RFC 9562 §5.4) in lower case.
///
/// Foundation's `UUID()` takes four times as long, because it opens `/dev/urandom` for each id.
enum UUIDv4 {
    static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let random: UInt64 = generator.next()
        return UUIDText.make(high: random & ~0xf000 | 0x4000, low: generator.next())
    }
}

/// Derives ids from other values (RFC 9562 §5.8): the same values always have the same id.
package enum UUIDv8 {
    /// Returns the id of a text.
    ///
    /// - Throws: ``QueueError/Code/spoolFailed`` when SHA-256 is not available.
    package static func make(hashing text: String) throws(QueueError) -> String {
        let digest = try SHA256.digest(of: Data(text.utf8))
        let (high, low) = (number(digest.bytes[0..<8]), number(digest.bytes[8..<16]))
        return UUIDText.make(high: high & ~0xf000 | 0x8000, low: low)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Formats UUIDs. This must be fast, because every enqueued request gets up to two of them. Each digit is therefore
/// written directly into the string's buffer.
private enum UUIDText {
    /// - Parameters:
    ///   - high: The first 64 bits of the UUID.
    ///   - low: The last 64 bits. The UUID's variant replaces the first two of them.
    static func make(high: UInt64, low: UInt64) -> String {
        let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
        return String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for digit in 0..<32 {
                if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                let half = digit < 16 ? high : low
                text[place] = hexadecimal(half >> UInt64(60 - digit % 16 * 4) & 15)
                place += 1
            }
            return place
        }
    }

    private static func hexadecimal(_ value: UInt64) -> UInt8 {
        UInt8(value) + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }
}
