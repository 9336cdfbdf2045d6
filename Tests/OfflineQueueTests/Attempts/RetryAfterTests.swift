internal import Foundation
internal import Glibc
internal import OfflineQueue
internal import Testing

@Suite struct RetryAfterTests {
    /// The expected seconds count from `start`, which is 2027-01-15 08:00:00 UTC.
    @Test(arguments: [
        ("0", 0), ("120", 120), (" 7 ", 7), ("86401", 86400), ("99999999999999999999999", 86400),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120), ("Friday, 15-Jan-27 08:02:00 GMT", 120),
        ("Fri Jan 15 08:02:00 2027", 120), ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Fri, 15 Jan 2037 08:00:00 GMT", 86400),
        // A year of two digits is between 1970 and 2069.
        ("Thursday, 15-Jan-70 08:00:00 GMT", 0), ("Tuesday, 15-Jan-69 08:00:00 GMT", 86400),
    ])
    func `seconds and dates are parsed and clamped`(text: String, seconds: Int) {
        #expect(RetryAfter.parse(text, now: start) == .seconds(seconds))
    }

    @Test(arguments: [
        "", "-1", "1.5", "soon", "Fri, 15 Jan 2027", "Fri, 32 Jan 2027 08:02:00 GMT", "x y z a b",
        "Fri, 15 Jan 2027 08:02 GMT", "Fri, 15 Jan 2027 25:02:00 GMT", "Fri, 15 Jan 99999 08:02:00 GMT",
        "Fri, 15 Jan 2027 08:02:00 CET", "Fri, 15 Foo 2027 08:02:00 GMT",
    ])
    func `a value that is neither a number nor a date is refused`(text: String) {
        #expect(RetryAfter.parse(text, now: start) == nil)
    }
}
