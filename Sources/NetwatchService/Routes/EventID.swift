/// The id of an event in a stream: the run of the queue, a hyphen, and the number of the event.
struct EventID: Hashable, CustomStringConvertible {
    let run: String
    let number: UInt64

    init(run: String, number: UInt64) {
        self.run = run
        self.number = number
    }

    /// Parses an id; `nil` if the text has another form.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let number = UInt64(parts[1]), number < .max else {
            return nil
        }
        self.init(run: String(parts[0]), number: number)
    }

    var description: String { "\(run)-\(number)" }
}
