internal import Synchronization

/// The number of bytes in uploads that no request uses yet. The store counts them against its limit.
final class StagedBytes: Sendable {
    private let value = Atomic<Int64>(0)

    var count: Int64 { value.load(ordering: .relaxed) }

    func set(_ count: Int64) { value.store(count, ordering: .relaxed) }
}
