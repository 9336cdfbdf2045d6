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

    /// How many transfers to one host go at a time unless a pool says otherwise. No server is troubled by so many
    /// connections, and small responses do not become faster with more.
    package static let defaultConnectionsPerHost = 64

    package let engine: TransferEngine
    let id = ID.make()
    let connectionsPerHost: Int

    /// - Parameters:
    ///   - engine: Who makes the transfers. Default: the engine that every session shares.
    ///   - connectionsPerHost: How many transfers to one host (scheme, name and port) go at a time, 1 or more, each
    ///     over a connection of its own. Others wait, the more urgent ones in front. Where the server speaks HTTP/2,
    ///     there may be ``WaitingRoom/streamsPerConnection`` if that is more.
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

    /// Makes transfers from now on use new connections; those under way keep theirs. Cached addresses stay valid. For when
    /// connections may have been made over an old network path.
    package func dropConnections() {
        engine.dropConnections(of: id)
    }

    /// Begins transfers to a host again of which the server has acknowledged nothing: they take new connections. Those that
    /// connect do so again at once. A request that must not arrive twice stays where it was sent. For when a lost path
    /// has returned.
    ///
    /// - Parameter host: A name in lower case or an address; IPv6 without brackets.
    package func restartStalled(to host: String) {
        engine.restartStalled(to: host, of: id)
    }

    /// Makes transfers from now on use new connections; those under way keep theirs. For when the network path has
    /// changed. Their names are looked up anew, even while the same name is being looked up already
    /// (``NameResolver/renew()``).
    package func renewConnections() {
        engine.renewConnections(of: id)
    }
}
