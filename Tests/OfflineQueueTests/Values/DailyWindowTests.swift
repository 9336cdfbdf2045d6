internal import Foundation
internal import Testing

@testable internal import OfflineQueue

@Suite struct DailyWindowTests {
    @Test(arguments: [
        ("22:00-06:00", "22:00-06:00"), ("00:00-23:59 UTC", "00:00-23:59"),
        ("06:30-07:00 Europe/Berlin", "06:30-07:00 Europe/Berlin"), ("01:02-03:04   UTC ", "01:02-03:04"),
    ])
    func `a window is parsed, and its description parses to the same window`(text: String, form: String)
        throws
    {
        let window = try DailyWindow(parsing: text)
        #expect(window.description == form)
        #expect(try DailyWindow(parsing: form) == window)
    }

    @Test(arguments: [
        "", "22:00", "22:00-22:00", "24:00-06:00", "22:60-06:00", "2:00-06:00", "22:00-06:00-07:00",
        "-1:00-06:00", "+1:00-06:00",
        "22:00-06:00 Mars/Olympus", "22.00-06.00", "22:00 - 06:00", "٢٢:00-06:00",
    ])
    func `a text that is no window is refused and quoted`(text: String) {
        let error = #expect(throws: QueueError.self) { try DailyWindow(parsing: text) }
        #expect(
            error?.code == .invalidOption && error?.message.contains("22:00-06:00") == true,
            "\(error as Any)"
        )
    }

    private func state(_ window: String, at time: String) throws -> DailyWindow.State {
        let date = try Date(time, strategy: .iso8601)
        return try DailyWindow(parsing: window).state(at: Timestamp(date))
    }

    @Test(
        arguments: [
            ("22:00-06:00", "2026-11-23T21:59:59Z", false, 1),
            ("22:00-06:00", "2026-11-23T22:00:00Z", true, 8 * 3600),
            ("22:00-06:00", "2026-11-24T05:59:59Z", true, 1),
            ("22:00-06:00", "2026-11-24T06:00:00Z", false, 16 * 3600),
            ("09:00-17:00", "2026-11-23T00:00:00Z", false, 9 * 3600),
            ("00:00-00:01", "2026-11-23T00:00:30Z", true, 30),
            // Berlin is one hour ahead of UTC in winter, and two in summer.
            ("22:00-06:00 Europe/Berlin", "2026-01-15T21:00:00Z", true, 8 * 3600),
            ("22:00-06:00 Europe/Berlin", "2026-07-15T20:30:00Z", true, 7 * 3600 + 1800),
            ("09:00-17:00", "1969-12-31T23:00:00Z", false, 10 * 3600),
        ] as [(String, String, Bool, Int64)]
    )
    func `a window is open from its start to before its end, in its zone`(
        window: String,
        time: String,
        isOpen: Bool,
        seconds: Int64
    ) throws {
        let state = try state(window, at: time)
        #expect(state == DailyWindow.State(isOpen: isOpen, change: .seconds(seconds)))
    }

    /// In Berlin, 02:00 to 03:00 does not exist on 2026-03-29, and exists twice on 2026-10-25.
    @Test func `when daylight saving time begins or ends, the window follows the clock on the wall`() throws {
        let night = "02:30-04:00 Europe/Berlin"
        #expect(try !state(night, at: "2026-03-29T00:59:59Z").isOpen)
        #expect(try state(night, at: "2026-03-29T01:00:00Z") == .init(isOpen: true, change: .seconds(3600)))
        let skipped = "02:00-02:59 Europe/Berlin"
        for minute in 0..<180 {
            let time = Date(timeIntervalSince1970: 1_774_742_400 + Double(minute) * 60)
            #expect(try !DailyWindow(parsing: skipped).state(at: Timestamp(time)).isOpen)
        }
        #expect(try state(skipped, at: "2026-10-25T00:30:00Z").isOpen)
        #expect(try !state(skipped, at: "2026-10-25T00:59:30Z").isOpen)
        #expect(try state(skipped, at: "2026-10-25T01:30:00Z").isOpen)
    }

    @Test(arguments: [
        ("22:00-06:00", "2026-11-23T21:00:00Z", "2026-11-23T22:00:00Z"),
        ("22:00-06:00", "2026-11-23T23:00:00Z", "2026-11-23T23:00:00Z"),
        ("09:00-17:00", "2026-11-23T18:00:00Z", "2026-11-24T09:00:00Z"),
        // The clocks of Berlin go forward at 01:00 UTC on 2026-03-29, and back at the same time on 2026-10-25.
        ("08:00-09:00 Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T06:00:00Z"),
        ("08:00-09:00 Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T07:00:00Z"),
        ("02:15-02:45 Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-30T00:15:00Z"),
        ("02:30-04:00 Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T01:00:00Z"),
        ("02:15-02:45 Europe/Berlin", "2026-10-25T00:50:00Z", "2026-10-25T01:15:00Z"),
    ])
    func `the next opening of a window is exact, also when the clocks change`(
        window: String,
        time: String,
        opening: String
    ) throws {
        let now = try Date(time, strategy: .iso8601)
        #expect(try DailyWindow(parsing: window).nextOpening(from: now) == Date(opening, strategy: .iso8601))
    }
}
