internal import ArgumentParser
internal import NetwatchService

extension Duration {
    /// Parses a command-line argument.
    static func argument(_ text: String) throws -> Duration {
        guard let duration = DurationText.parse(text) else {
            throw ValidationError("\(Printer.quoted(text)) is not \(DurationText.acceptedForms)")
        }
        return duration
    }

    /// Returns a function that parses a command-line argument and refuses a duration outside a range.
    ///
    /// - Parameter words: The range for messages, such as `1ms to 24h`.
    static func argument(
        in range: ClosedRange<Duration>,
        _ words: String
    ) -> @Sendable (String) throws -> Duration {
        { text in
            let duration = DurationText.parse(text)
            guard let duration, range.contains(duration) else {
                let accepted = duration == nil ? "\(DurationText.forms)," : "a duration"
                throw ValidationError("\(Printer.quoted(text)) is not \(accepted) from \(words)")
            }
            return duration
        }
    }

    /// The duration as a number of seconds, for machine-readable output.
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
