internal import Synchronization

/// A session's share of the engine: connections that no other pool uses, and a connection limit.
///
/// Transfers of a released pool continue to their end.
package final class TransferPool: Sendable {
    /// Identifies a pool within the process.
    struct ID: Hashable, Sendable {
        /// The pool of transfers that are started without a pool.
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

    /// The default number of concurrent transfers to one host. Servers can handle this number of connections, and more
    /// do not make small responses faster.
    package static let defaultConnectionsPerHost = 64

    package let engine: TransferEngine
    let id = ID.make()
    let connectionsPerHost: Int

    /// - Parameters:
    ///   - engine: The engine that runs the transfers. Default: the engine that all sessions share.
    ///   - connectionsPerHost: The number of concurrent transfers to one host (scheme, name and port), 1 or more, each
    ///     over a separate connection. Other transfers wait in the order of their priority. If the server speaks
    ///     HTTP/2, the limit is at least ``ConnectionTable/streamsPerConnection``.
    package init(
        engine: TransferEngine = .shared,
        connectionsPerHost: Int = TransferPool.defaultConnectionsPerHost
    ) {
        self.engine = engine
        self.connectionsPerHost = max(1, connectionsPerHost)
    }

    deinit { engine.forget(id) }

    /// Starts a transfer. `deliver` is called on the engine's thread, must not block it, and always receives exactly
    /// one end.
    ///
    /// - Parameter deliver: Receives the events since the last call, in order.
    @discardableResult
    package func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) -> TransferID {
        engine.start(request, id, connectionsPerHost, deliver)
    }

    /// Makes later transfers use new connections; running transfers keep theirs. Cached addresses stay valid. Use this
    /// when connections may have been made over an old network path.
    package func dropConnections() {
        engine.dropConnections(of: id)
    }

    /// Restarts the transfers to a host of which the server has acknowledged nothing: they take new connections.
    /// Transfers that are still connecting connect again at once. A request that must not arrive twice is not sent
    /// again. Use this when a lost path has returned.
    ///
    /// - Parameter host: A name in lower case or an address; IPv6 without brackets.
    package func restartStalled(to host: String) {
        engine.restartStalled(to: host, of: id)
    }

    /// Makes later transfers use new connections; running transfers keep theirs. Use this when the network path has
    /// changed. Host names are resolved again, even if a lookup of the same name is already running
    /// (``NameResolver/renew()``).
    package func renewConnections() {
        engine.renewConnections(of: id)
    }
}
