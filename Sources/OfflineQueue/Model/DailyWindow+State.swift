public import Foundation

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
