/// The statuses of a ``NetworkReachabilityManager``, the present one first, none the same as the one before. Only
/// the newest is kept for a slow reader.
public struct ReachabilityStatuses: AsyncSequence, Sendable {
    /// It never fails.
    public typealias Failure = Never

    let paths: AsyncStream<PathStatus>

    /// Reads the statuses one by one. The sequence does not end by itself.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var paths: AsyncStream<PathStatus>.AsyncIterator
        private var latest: NetworkReachabilityManager.NetworkReachabilityStatus?

        init(_ paths: AsyncStream<PathStatus>) {
            self.paths = paths.makeAsyncIterator()
        }

        /// The type of the sequence's elements.
        public typealias Element = NetworkReachabilityManager.NetworkReachabilityStatus
        /// It never fails.
        public typealias Failure = Never

        /// The next status that differs from the one before; `nil` when the task was cancelled.
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

    /// Starts to read. For one reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(paths)
    }
}
