internal import Synchronization

/// A fault that tests inject once, to verify that they detect a broken completion guarantee. While none is
/// armed, a check costs one atomic load.
package enum RequestFault: Int, Codable, Sendable, CaseIterable {
    /// A handler is not called.
    case dropsHandler = 1
    /// A handler is called twice.
    case doublesHandler
    /// A session retains a finished request.
    case keepsRequest
    /// The answer of a failed request's owner is dropped.
    case dropsAnswer
    /// Requests that wait for a path are not woken. Applies from the `place`th wake-up on, because the path may
    /// appear again.
    case dropsWakeUp

    private static let armed = Atomic(0)
    private static let left = Atomic(0)

    /// Arms the fault: it strikes at its `place`th opportunity from now on, in the whole process.
    package func strike(at place: Int) {
        Self.left.store(place, ordering: .relaxed)
        Self.armed.store(rawValue, ordering: .releasing)
    }

    /// Whether the fault strikes now. Called at each opportunity.
    var strikes: Bool { countDown() == 0 }

    /// Whether the fault strikes now or has struck before. Called at each opportunity.
    var strikesFromNow: Bool { countDown().map { $0 <= 0 } ?? false }

    private func countDown() -> Int? {
        guard Self.armed.load(ordering: .acquiring) == rawValue else { return nil }
        return Self.left.wrappingSubtract(1, ordering: .relaxed).newValue
    }
}
