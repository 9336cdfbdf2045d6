/// The statuses of a ``NetworkReachabilityManager``, starting with the current one, without consecutive duplicates. A
/// slow reader gets only the newest one.
public struct ReachabilityStatuses: AsyncSequence, Sendable {
    /// The sequence never fails.
    public typealias Failure = Never

    let paths: AsyncStream<PathStatus>

    /// Iterates over the statuses. The sequence does not end by itself.
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

    /// Creates an iterator. The sequence supports only one reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(paths)
    }
}
