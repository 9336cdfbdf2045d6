internal import Synchronization

/// What is broken once, to show that the check of the completion law notices. Else asking costs an atomic load.
package enum RequestFault: Int, Codable, Sendable, CaseIterable {
    /// A handler is not called.
    case dropsHandler = 1
    /// A handler is called twice.
    case doublesHandler
    /// A session keeps a request that has ended.
    case keepsRequest
    /// The answer of a failed request's owner is lost.
    case dropsAnswer
    /// Those who wait for a path do not hear that it has come, from the `place`th time on: it may come again.
    case dropsWakeUp

    private static let armed = Atomic(0)
    private static let left = Atomic(0)

    /// Breaks the handler, the end of a request, …, that is the `place`th from now on, in the whole process.
    package func strike(at place: Int) {
        Self.left.store(place, ordering: .relaxed)
        Self.armed.store(rawValue, ordering: .releasing)
    }

    /// Whether it strikes now. Asked each time that it could.
    var strikes: Bool { countDown() == 0 }

    /// Whether it strikes now or has struck before. Asked each time that it could.
    var strikesFromNow: Bool { countDown().map { $0 <= 0 } ?? false }

    private func countDown() -> Int? {
        guard Self.armed.load(ordering: .acquiring) == rawValue else { return nil }
        return Self.left.wrappingSubtract(1, ordering: .relaxed).newValue
    }
}
