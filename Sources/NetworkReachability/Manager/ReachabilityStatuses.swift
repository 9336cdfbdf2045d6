/// The statuses of a ``NetworkReachabilityManager`` as a sequence, starting with the current one.
///
/// Each status differs from the previous one. A slow reader gets only the newest status.
public struct ReachabilityStatuses: AsyncSequence, Sendable {
    /// The sequence never fails.
    public typealias Failure = Never

    let paths: AsyncStream<PathStatus>

    /// The iterator over the statuses. It ends only if its task is cancelled.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var paths: AsyncStream<PathStatus>.AsyncIterator
        private var latest: NetworkReachabilityManager.NetworkReachabilityStatus?

        init(_ paths: AsyncStream<PathStatus>) {
            self.paths = paths.makeAsyncIterator()
        }

        /// The element type of the sequence.
        public typealias Element = NetworkReachabilityManager.NetworkReachabilityStatus
        /// The iterator never fails.
        public typealias Failure = Never

        /// Returns the next status that differs from the previous one; `nil` if the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async -> NetworkReachabilityManager.NetworkReachabilityStatus? {
            while let path = await paths.next(isolation: actor) {
                let status = NetworkReachabilityManager.NetworkReachabilityStatus(path)
                guard status != latest else { continue }
                latest = status
                return status
            }
            return nil
        }
    }

    /// Creates an iterator. A sequence supports only one iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(paths)
    }
}
