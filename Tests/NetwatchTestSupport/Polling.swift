internal import Glibc

/// Checks a condition repeatedly until it holds, for states of other processes or of the kernel whose change cannot be
/// waited for. Only the time limit of the test ends the wait early.
///
/// - Throws: The condition's error; `CancellationError` if the task is cancelled.
package func poll(
    every interval: Duration = .milliseconds(20),
    until isSatisfied: () async throws -> Bool
) async throws {
    while !(try await isSatisfied()) { try await Task.sleep(for: interval) }
}

/// Blocks the thread until a condition holds. For tests that already run off the cooperative pool, see ``offPool(_:)``.
package func pollBlocking(until isSatisfied: () throws -> Bool) rethrows {
    while !(try isSatisfied()) { usleep(20_000) }
}
