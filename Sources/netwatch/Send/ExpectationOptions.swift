internal import ArgumentParser
internal import OfflineQueue

/// The options that describe the expected response.
struct ExpectationOptions: ParsableArguments {
    @Option(
        help:
            "The expected response, like status=2xx,type=application/json,json=/ok=true. Default status=2xx. Repeatable."
    )
    var expect: [String] = []

    /// Returns what all `--expect` options together expect; `nil` if there is none.
    func expectation() throws(CommandError) -> Expectation? {
        guard !expect.isEmpty else { return nil }
        do {
            return try Expectation(parsing: expect.joined(separator: ","))
        } catch {
            throw CommandError(.usage, "`--expect`: \(error.message)")
        }
    }
}
