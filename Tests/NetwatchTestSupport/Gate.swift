internal import Dispatch

/// Holds a thread until a test lets it go.
package final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func wait() { semaphore.wait() }

    package func open() { semaphore.signal() }
}
