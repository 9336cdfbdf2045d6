/// A prediction of which open connection of a multi handle can take another transfer. It does no I/O.
///
/// libcurl alone selects the connection and does not report it in advance. If the prediction is wrong, the engine makes
/// a connection for the transfer (see ``Transfer/lacksConnection``).
final class ConnectionTable {
    /// The maximum number of streams that libcurl runs over one HTTP/2 connection, its default for
    /// `CURLMOPT_MAX_CONCURRENT_STREAMS`. If the server allows fewer, libcurl needs more connections.
    static let streamsPerConnection = 100

    private final class Connection {
        let descriptor: CInt
        /// Unowned, because the origin retains its connections. The table retains it while it has connections.
        unowned let origin: Origin
        /// The local port, or 0 for a unix socket.
        let localPort: Int
        /// The transfers that use the connection or have reserved it.
        var users: Set<TransferID> = [] { didSet { updateFree() } }
        /// The maximum number of users.
        var capacity: Int { didSet { if capacity != oldValue { updateFree() } } }
        /// Whether the connection speaks HTTP/2, or may do so.
        var isMultiplexed: Bool

        init(_ descriptor: CInt, _ origin: Origin, localPort: Int, capacity: Int) {
            self.descriptor = descriptor
            self.origin = origin
            self.localPort = localPort
            self.capacity = capacity
            isMultiplexed = capacity > 1
        }

        private func updateFree() {
            origin.free[descriptor] = users.count < capacity ? self : nil
        }
    }

    private final class Origin {
        let name: String
        var all: [CInt: Connection] = [:]
        var free: [CInt: Connection] = [:]
        /// The connections by local port, without unix sockets. Each transfer looks its connection up, and there may be
        /// hundreds.
        var byLocalPort: [Int: Connection] = [:]

        init(_ name: String) {
            self.name = name
        }
    }

    private var connections: [CInt: Connection] = [:]
    private var origins: [String: Origin] = [:]
    /// The connection that each transfer uses or has reserved.
    private var assigned: [TransferID: Connection] = [:]
    /// The transfers that use a connection to a unix socket that is not known yet, with its origin.
    private var unlocated: [TransferID: String] = [:]

    /// Adds a connection that was made for a transfer, and assigns it to this transfer.
    ///
    /// - Parameters:
    ///   - origin: The ``Transfer/connectionOrigin``.
    ///   - localPort: The local port, or 0 for a unix socket.
    ///   - capacity: The maximum number of concurrent transfers over the connection, as far as it is known.
    func open(
        _ descriptor: CInt,
        to origin: String,
        localPort: Int,
        capacity: Int,
        for transfer: TransferID
    ) {
        close(descriptor)
        let origin = origins[origin] ?? Origin(origin)
        origins[origin.name] = origin
        let connection = Connection(descriptor, origin, localPort: localPort, capacity: capacity)
        connections[descriptor] = connection
        origin.all[descriptor] = connection
        if localPort > 0 { origin.byLocalPort[localPort] = connection }
        assign(transfer, to: connection)
    }

    func close(_ descriptor: CInt) {
        guard let connection = connections.removeValue(forKey: descriptor) else { return }
        for user in connection.users { assigned[user] = nil }
        let (origin, port) = (connection.origin, connection.localPort)
        origin.all[descriptor] = nil
        origin.free[descriptor] = nil
        if origin.byLocalPort[port] === connection { origin.byLocalPort[port] = nil }
        if origin.all.isEmpty { origins[origin.name] = nil }
    }

    /// Reserves an open connection for a transfer that is about to start. Returns `false` if no connection has room.
    ///
    /// - Parameter isQuiet: Returns whether a connection has nothing to read. Data on an idle HTTP/1.1 connection
    ///   usually means that the server has closed it, so the connection is not used again. HTTP/2 connections are not
    ///   checked, because servers may send frames at any time.
    func reserve(
        _ origin: String,
        for transfer: TransferID,
        isQuiet: (CInt) -> Bool
    ) -> Bool {
        let origin = origins[origin]
        while let connection = origin?.free.first?.value {
            if connection.isMultiplexed || isQuiet(connection.descriptor) {
                assign(transfer, to: connection)
                return true
            }
            connection.capacity = 0
        }
        return false
    }

    /// Records that libcurl has selected a connection for a transfer. The local port shows which one. A unix socket has
    /// none, so ``use(_:by:)`` must follow unless the connection is new.
    func use(by transfer: TransferID, _ origin: String, localPort: Int) {
        guard localPort > 0 else {
            if assigned[transfer] == nil { unlocated[transfer] = origin }
            return
        }
        if assigned[transfer]?.localPort == localPort { return }
        assign(transfer, to: origins[origin]?.byLocalPort[localPort])
    }

    /// Whether ``use(_:by:)`` must follow for a transfer.
    var hasUnlocated: Bool { !unlocated.isEmpty }

    /// Records the connection that a transfer to a unix socket uses. Other transfers are ignored.
    func use(_ descriptor: CInt, by transfer: TransferID) {
        guard let connection = connections[descriptor], connection.origin.name == unlocated[transfer] else {
            return
        }
        assign(transfer, to: connection)
    }

    /// Sets the maximum number of transfers of the connection that a transfer uses.
    func setCapacity(ofConnectionOf transfer: TransferID, to capacity: Int) {
        guard let connection = assigned[transfer] else { return }
        connection.isMultiplexed = capacity > 1
        connection.capacity = capacity
    }

    /// Records that libcurl did not use the connection that was reserved for a transfer. The connection counts as full:
    /// its capacity becomes its current number of transfers.
    func reservationWasNotUsed(_ transfer: TransferID) {
        guard let connection = assigned[transfer] else { return }
        assign(transfer, to: nil)
        connection.capacity = connection.users.count
    }

    /// Returns whether no transfer uses a connection or has reserved it, and the connection does not speak HTTP/2.
    func isIdleHTTP1(_ descriptor: CInt) -> Bool {
        guard let connection = connections[descriptor], !unlocated.values.contains(connection.origin.name)
        else {
            return false
        }
        return connection.users.isEmpty && !connection.isMultiplexed
    }

    /// Returns the connections to an origin that ``isIdleHTTP1(_:)`` describes.
    func idleHTTP1Connections(to origin: String) -> Set<CInt> {
        Set(origins[origin]?.all.keys.filter(isIdleHTTP1) ?? [])
    }

    /// Calls a closure with the connection that a transfer uses or has reserved, if it is known to speak HTTP/1.1. If
    /// the connection is not known, calls the closure with each idle one to the origin.
    func forEachHTTP1Connection(of transfer: TransferID, _ origin: String, _ body: (CInt) -> Void) {
        if let connection = assigned[transfer] {
            if !connection.isMultiplexed { body(connection.descriptor) }
        } else if let origin = origins[origin] {
            for connection in origin.all.values where connection.users.isEmpty && !connection.isMultiplexed {
                body(connection.descriptor)
            }
        }
    }

    /// Returns the connection that a transfer uses or has reserved.
    func connection(of transfer: TransferID) -> CInt? { assigned[transfer]?.descriptor }

    /// Returns the connection of a transfer; `nil` if other transfers use it, too, or if there is none.
    func connection(onlyOf transfer: TransferID) -> CInt? {
        assigned[transfer].flatMap { $0.users.count == 1 ? $0.descriptor : nil }
    }

    /// Releases the connection of a transfer, and returns it.
    @discardableResult
    func release(_ transfer: TransferID) -> CInt? { assign(transfer, to: nil)?.descriptor }

    /// Returns the previous connection of the transfer.
    @discardableResult
    private func assign(_ transfer: TransferID, to connection: Connection?) -> Connection? {
        if hasUnlocated { unlocated[transfer] = nil }
        let previous = assigned.removeValue(forKey: transfer)
        previous?.users.remove(transfer)
        guard let connection else { return previous }
        assigned[transfer] = connection
        connection.users.insert(transfer)
        return previous
    }
}
