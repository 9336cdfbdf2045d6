internal import Dispatch

/// Blocks a thread until a test opens the gate.
package final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func wait() { semaphore.wait() }

    package func open() { semaphore.signal() }
}
