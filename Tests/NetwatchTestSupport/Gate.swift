internal import Dispatch

/// A gate at which one thread blocks until another one opens it. Each ``open()`` lets one ``wait()`` pass.
package final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func wait() { semaphore.wait() }

    package func open() { semaphore.signal() }
}
