/// Who has to be looked after when. Setting a moment takes constant time, and so does asking for the
/// earliest; all are gone through only when one has come.
struct WakeUps<Key: Hashable> {
    private var due: [Key: ContinuousClock.Instant] = [:]

    /// Not later than the earliest moment: one that was put off may have been it.
    private(set) var earliest: ContinuousClock.Instant?

    mutating func set(_ key: Key, _ moment: ContinuousClock.Instant?) {
        guard let moment else {
            due[key] = nil
            return
        }
        due[key] = moment
        earliest = min(earliest ?? moment, moment)
    }

    /// Takes out everyone whose moment has come.
    mutating func takeDue(at now: ContinuousClock.Instant) -> [Key] {
        guard let earliest, earliest <= now else { return [] }
        let keys = due.filter { $0.value <= now }.map(\.key)
        for key in keys { due[key] = nil }
        self.earliest = due.values.min()
        return keys
    }
}
