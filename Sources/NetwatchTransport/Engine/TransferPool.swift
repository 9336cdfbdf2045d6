internal import Synchronization

/// What one session has in the engine: connections that nobody else's transfers use, and a limit of them.
///
/// Transfers of a pool that is gone go on to their end.
package final class TransferPool: Sendable {
    /// Names a pool of the process.
    struct ID: Hashable, Sendable {
        /// The pool of transfers that are started without one.
        static let common = ID(rawValue: 0)
        private static let next = Atomic<UInt64>(1)

        private let rawValue: UInt64

        private init(rawValue: UInt64) {
            self.rawValue = rawValue
        }

        static func make() -> ID {
            ID(rawValue: next.wrappingAdd(1, ordering: .relaxed).oldValue)
        }
    }

    /// How many connections to one host there are at most unless a pool says otherwise. No server is troubled by
    /// them, and small responses do not become faster with more.
    package static let defaultConnectionsPerHost = 64

    package let engine: TransferEngine
    let id = ID.make()
    let connectionsPerHost: Int

    /// - Parameters:
    ///   - engine: Who makes the transfers. Default: the engine that every session shares.
    ///   - connectionsPerHost: How many connections to one host (scheme, name and port) there are at most, 1 or
    ///     more. Transfers beyond that wait, the more urgent ones in front. Where the server speaks HTTP/2, a
    ///     connection carries many transfers (``WaitingRoom/streamsPerConnection``).
    package init(
        engine: TransferEngine = .shared,
        connectionsPerHost: Int = TransferPool.defaultConnectionsPerHost
    ) {
        self.engine = engine
        self.connectionsPerHost = max(1, connectionsPerHost)
    }

    deinit { engine.forget(id) }

    /// Starts a transfer. `deliver` is called on the engine's thread, must not block it, and gets exactly one end,
    /// whatever happens.
    ///
    /// - Parameter deliver: Takes what has come since the last call, in its order.
    @discardableResult
    package func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) -> TransferID {
        engine.start(request, id, connectionsPerHost, deliver)
    }

    /// Makes transfers from now on use new connections and newly looked-up names; those under way keep theirs. For
    /// when the network path has changed.
    package func renewConnections() {
        engine.renewConnections(of: id)
    }
}
