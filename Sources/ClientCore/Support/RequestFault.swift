internal import Synchronization

/// A fault that a test injects once, to verify that the tests detect a broken completion guarantee. While no fault is
/// injected, each check costs one atomic load.
package enum RequestFault: Int, Codable, Sendable, CaseIterable {
    /// A handler is not called.
    case dropsHandler = 1
    /// A handler is called twice.
    case doublesHandler
    /// A session retains a finished request.
    case keepsRequest
    /// The answer of a ``FailedRequestOwner`` is dropped.
    case dropsAnswer
    /// Requests that wait for a path are not woken. This fault applies to the chosen wake-up and to all later ones,
    /// because the path may appear again.
    case dropsWakeUp

    private static let injected = Atomic(0)
    private static let left = Atomic(0)

    /// Injects the fault in the whole process.
    ///
    /// - Parameter opportunity: The number of checks of this fault, from now on, until it occurs: 1 for the next check.
    package func inject(at opportunity: Int) {
        Self.left.store(opportunity, ordering: .relaxed)
        Self.injected.store(rawValue, ordering: .releasing)
    }

    /// Whether the fault occurs now. Each access counts as one check.
    var occurs: Bool { countDown() == 0 }

    /// Whether the fault occurs now or has occurred before. Each access counts as one check.
    var hasOccurred: Bool { countDown().map { $0 <= 0 } ?? false }

    private func countDown() -> Int? {
        guard Self.injected.load(ordering: .acquiring) == rawValue else { return nil }
        return Self.left.wrappingSubtract(1, ordering: .relaxed).newValue
    }
}
