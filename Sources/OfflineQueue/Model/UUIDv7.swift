/// Ids that sort by the millisecond they were made in (RFC 9562 §5.7). Their order is a convenience for
/// readers; the store's sequence is the only one that counts.
enum UUIDv7 {
    static func make(at moment: Timestamp = .now) -> String {
        var generator = SystemRandomNumberGenerator()
        let time = UInt64(bitPattern: moment.milliseconds) << 16
        let high = time | 0x7000 | (generator.next() & 0x0fff)
        let low = 0x8000_0000_0000_0000 | (generator.next() & 0x3fff_ffff_ffff_ffff)
        let digits = hexadecimal(high) + hexadecimal(low)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }

    private static func hexadecimal(_ value: UInt64) -> [Character] {
        let digits = String(value, radix: 16)
        return Array(String(repeating: "0", count: 16 - digits.count) + digits)
    }
}
