internal import NetwatchEventLoop
internal import Synchronization

/// A group of transfers with its own connections and its own connection limit. Each session has one.
///
/// When a pool is released, its transfers continue to their end.
package final class TransferPool: Sendable {
    /// An identifier of a pool, unique within the process.
    struct ID: Hashable, Sendable {
        /// The pool of the transfers that are started on the engine directly.
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

    /// The default limit of concurrent transfers to one host: 64. Servers can handle this number of connections, and
    /// more do not make small responses faster.
    package static let defaultConnectionsPerHost = 64

    package let engine: TransferEngine
    let id = ID.make()
    let connectionsPerHost: Int

    /// Creates a pool.
    ///
    /// - Parameters:
    ///   - engine: The engine that runs the transfers. Default: the engine that all sessions share.
    ///   - connectionsPerHost: The maximum number of concurrent transfers to one host (scheme, name and port), at least
    ///     1. Further transfers wait in the order of their priority. With HTTP/1.1, each transfer has a separate
    ///     connection. With HTTP/2, transfers share connections, and the limit is at least
    ///     ``ConnectionTable/streamsPerConnection``.
    package init(
        engine: TransferEngine = .shared,
        connectionsPerHost: Int = TransferPool.defaultConnectionsPerHost
    ) {
        self.engine = engine
        self.connectionsPerHost = max(1, connectionsPerHost)
    }

    deinit { engine.forget(id) }

    /// Starts a transfer.
    ///
    /// - Parameter deliver: Receives the events since its last call, in order. The last event of the transfer is always
    ///   ``TransferEvent/end(_:)``. The engine calls `deliver` on its own thread, so it must not block.
    @discardableResult
    package func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) -> TransferID {
        engine.start(request, id, connectionsPerHost, deliver)
    }

    /// Makes later transfers use new connections. Running transfers keep theirs. Cached addresses stay valid, unlike
    /// after ``renewConnections()``.
    ///
    /// Use this when connections may have been made over an old network path.
    package func dropConnections() {
        engine.dropConnections(of: id)
    }

    /// Restarts the stalled transfers to a port of a host over new connections. Use this when a lost network path has
    /// returned.
    ///
    /// - A transfer that is still connecting begins its connection attempts again immediately.
    /// - A transfer whose request was sent restarts if the server has acknowledged none of it.
    /// - A request that must not arrive twice is not sent again.
    ///
    /// - Parameters:
    ///   - host: The host of the URL: a name in lower case, or an address (IPv6 without brackets).
    ///   - port: The port of the URL. Transfers to other ports continue, because their paths may be different.
    package func restartStalled(to host: String, port: Int) {
        engine.restartStalled(to: host, port: port, of: id)
    }

    /// Ends the transfers that wait for a response over a connection to a peer. Use this when there is no network path
    /// to the peer any more.
    ///
    /// They fail with code 56 (`CURLE_RECV_ERROR`). Transfers whose response has begun continue. So do transfers that
    /// are bound to an interface, because they may have another path.
    package func endUnanswered(by peer: ConnectionPeer) {
        engine.endUnanswered(by: peer, of: id)
    }

    /// Makes later transfers use new connections, and resolves their host names again, even if a lookup of the same
    /// name is already running (``NameResolver/renew()``). Running transfers keep their connections.
    ///
    /// Use this when the network path has changed.
    package func renewConnections() {
        engine.renewConnections(of: id)
    }
}
