internal import Glibc

/// Checks a condition repeatedly until it holds.
///
/// For states of other processes or of the kernel that change without an event. The wait has no time limit except that
/// of the test.
///
/// - Throws: The error of the condition. `CancellationError` if the task is cancelled.
package func poll(
    every interval: Duration = .milliseconds(20),
    until isSatisfied: () async throws -> Bool
) async throws {
    while !(try await isSatisfied()) { try await Task.sleep(for: interval) }
}

/// Checks a condition every 20 ms and blocks the thread until it holds. For tests on a separate thread; see
/// ``offPool(_:)``.
package func pollBlocking(until isSatisfied: () throws -> Bool) rethrows {
    while !(try isSatisfied()) { usleep(20_000) }
}
