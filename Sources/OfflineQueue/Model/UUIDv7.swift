/// Ids that sort by the millisecond of their creation (RFC 9562 §5.7). Their order is only a convenience for readers;
/// the queue relies on the store's sequence.
package enum UUIDv7 {
    package static func make(at moment: Timestamp = .now) -> String {
        var generator = SystemRandomNumberGenerator()
        let time = UInt64(bitPattern: moment.milliseconds) << 16
        let random: UInt64 = generator.next()
        return UUIDText.make(high: time | 0x7000 | random & 0x0fff, low: generator.next())
    }
}

/// Random ids (RFC 9562 §5.4), in lower case. Foundation's take four times as long, because it opens `/dev/urandom` for
/// each.
enum UUIDv4 {
    static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let random: UInt64 = generator.next()
        return UUIDText.make(high: random & ~0xf000 | 0x4000, low: generator.next())
    }
}

/// Formats UUIDs digit by digit, because every enqueued request gets two of them.
private enum UUIDText {
    /// - Parameter low: The lower 64 bits. Their first two bits are replaced with the variant.
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
