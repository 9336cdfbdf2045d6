internal import Synchronization

/// A fault that tests inject once, to verify that they detect a broken completion guarantee. While none is
/// injected, a check costs one atomic load.
package enum RequestFault: Int, Codable, Sendable, CaseIterable {
    /// A handler is not called.
    case dropsHandler = 1
    /// A handler is called twice.
    case doublesHandler
    /// A session retains a finished request.
    case keepsRequest
    /// The answer of a failed request's owner is dropped.
    case dropsAnswer
    /// Requests that wait for a path are not woken. Applies from the `opportunity`th wake-up on, because the path may
    /// appear again.
    case dropsWakeUp

    private static let injected = Atomic(0)
    private static let left = Atomic(0)

    /// Injects the fault at its `opportunity`th opportunity from now on, in the whole process.
    package func inject(at opportunity: Int) {
        Self.left.store(opportunity, ordering: .relaxed)
        Self.injected.store(rawValue, ordering: .releasing)
    }

    /// Whether the fault occurs now. Called at each opportunity.
    var occurs: Bool { countDown() == 0 }

    /// Whether the fault occurs now or has occurred before. Called at each opportunity.
    var hasOccurred: Bool { countDown().map { $0 <= 0 } ?? false }

    private func countDown() -> Int? {
        guard Self.injected.load(ordering: .acquiring) == rawValue else { return nil }
        return Self.left.wrappingSubtract(1, ordering: .relaxed).newValue
    }
}
