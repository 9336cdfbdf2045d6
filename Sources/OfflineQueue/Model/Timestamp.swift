public import Foundation
internal import Glibc

/// A wall-clock time in milliseconds since 1970, the form in which the database stores times.
package struct Timestamp: Hashable, Comparable, Sendable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The current time, from `clock_gettime(CLOCK_REALTIME)`.
    package static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// The maximum distance of a timestamp from 1970 in milliseconds: about 30,000 years.
    static let farthest: Int64 = 1_000_000_000_000_000

    package init(_ date: Date) {
        // `Int64(_:)` would crash if a date were NaN or out of range. NaN becomes the farthest time in the future.
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        let farthest = Double(Self.farthest)
        self.milliseconds = Int64(max(-farthest, min(farthest, milliseconds)))
    }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Returns the time after a duration, rounded up to a millisecond so that nothing is due too early.
    package static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        let milliseconds = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Timestamp(milliseconds: moment.milliseconds + seconds * 1000 + milliseconds)
    }

    package static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        moment + (.zero - duration)
    }

    package static func - (left: Timestamp, right: Timestamp) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }
}

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

extension DailyWindow {
    /// The state of a window at a time: whether it is open, and the time until that changes unless the zone's offset
    /// changes before.
    struct State: Hashable {
        let isOpen: Bool
        let change: Duration
    }

    func state(at now: Timestamp) -> State {
        let day: Int64 = 86_400_000
        let zone = zone.flatMap(TimeZone.init(identifier:))
        let offset = Int64(zone?.secondsFromGMT(for: now.date) ?? 0) * 1000
        let time = ((now.milliseconds + offset) % day + day) % day
        func wait(until minute: Int) -> Int64 { (Int64(minute) * 60_000 - time + day) % day }
        let (opens, closes) = (wait(until: start), wait(until: end))
        // The next of the two changes tells the current state. At the moment of opening, `opens` is 0.
        let isOpen = closes > 0 && (opens == 0 || closes < opens)
        return State(isOpen: isOpen, change: .milliseconds(isOpen ? closes : opens))
    }

    /// Returns the first time from `date` on at which the window is open: `date` itself if the window is open then.
    ///
    /// The returned time is no longer correct after the wall clock is set, or after the zone's rules change.
    public func nextOpening(from date: Date) -> Date {
        let zone = zone.flatMap(TimeZone.init(identifier:))
        var time = Timestamp(date)
        while case let state = state(at: time), !state.isOpen {
            let change = time + state.change
            // After a change of the zone's offset, the window opens at another time. It opens within two days.
            let transition = zone?.nextDaylightSavingTimeTransition(after: time.date).map(Timestamp.init)
            time = min(change, max(transition ?? change, time + .seconds(1)))
        }
        return time.date
    }
}
