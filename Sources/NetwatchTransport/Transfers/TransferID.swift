internal import Synchronization

/// An identifier of a transfer, unique within the process.
package struct TransferID: Hashable, Sendable {
    private static let next = Atomic<UInt64>(0)

    private let rawValue: UInt64

    init() {
        rawValue = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }
}
