/// Checks a condition repeatedly until it holds.
///
/// Only for states that change without an event: those of the kernel, for example its table of sockets; those of another
/// process; and those that a service reports only in the answer to a request. The wait has no time limit except that of
/// the test.
///
/// - Throws: The error of the condition. `CancellationError` if the task is cancelled.
package func poll(
    every interval: Duration = .milliseconds(20),
    until isSatisfied: () async throws -> Bool
) async throws {
    while !(try await isSatisfied()) { try await Task.sleep(for: interval) }
}
