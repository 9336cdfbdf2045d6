internal import Synchronization

/// What is broken once in a session's requests, to show that the check of their completion notices.
package final class RequestFault: Sendable {
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// A handler is not called.
        case dropsHandler
        /// A handler is called twice.
        case doublesHandler
        /// The session keeps a request that has ended.
        case keepsRequest
    }

    private let kind: Kind
    private let left: Atomic<Int>

    /// - Parameter place: Which handler, or which end of a request, it strikes; 1 is the first.
    package init(_ kind: Kind, at place: Int) {
        self.kind = kind
        left = Atomic(place)
    }

    /// Whether it strikes now. Asked each time that it could.
    func strikes(_ kind: Kind) -> Bool {
        kind == self.kind && left.wrappingSubtract(1, ordering: .relaxed).newValue == 0
    }
}
