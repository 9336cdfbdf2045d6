/// A prediction of which open connection of a multi handle can take another transfer. A value without I/O.
///
/// libcurl alone selects the connection and does not report it in advance. If the prediction is wrong, the engine makes
/// a connection for the transfer (see ``Transfer/lacksConnection``).
struct ConnectionTable {
    /// The maximum number of streams that libcurl runs over one HTTP/2 connection, its default for
    /// `CURLMOPT_MAX_CONCURRENT_STREAMS`. If the server allows fewer, libcurl needs more connections.
    static let streamsPerConnection = 100

    private struct Connection {
        let origin: String
        /// The local port, or 0 for a unix socket.
        let localPort: Int
        /// The transfers that use the connection or have reserved it.
        var users: Set<TransferID> = []
        /// The maximum number of users.
        var capacity: Int

        /// Whether the connection speaks HTTP/2, or may do so.
        var isMultiplexed: Bool

        var isFree: Bool { users.count < capacity }
    }

    private struct Origin {
        var all: Set<CInt> = []
        var free: Set<CInt> = []
        /// The connections by local port, without unix sockets. Each transfer looks its connection up, and there may be
        /// hundreds.
        var byLocalPort: [Int: CInt] = [:]
    }

    private var connections: [CInt: Connection] = [:]
    private var origins: [String: Origin] = [:]
    /// The connection that each transfer uses or has reserved.
    private var assigned: [TransferID: CInt] = [:]
    /// The transfers that use a connection to a unix socket that is not known yet, with its origin.
    private var unlocated: [TransferID: String] = [:]

    /// Adds a connection that was made for a transfer, and assigns it to this transfer.
    ///
    /// - Parameters:
    ///   - origin: The ``Transfer/connectionOrigin``.
    ///   - localPort: The local port, or 0 for a unix socket.
    ///   - capacity: The maximum number of concurrent transfers over the connection, as far as it is known.
    mutating func open(
        _ descriptor: CInt,
        to origin: String,
        localPort: Int,
        capacity: Int,
        for transfer: TransferID
    ) {
        close(descriptor)
        connections[descriptor] = Connection(
            origin: origin,
            localPort: localPort,
            capacity: capacity,
            isMultiplexed: capacity > 1
        )
        origins[origin, default: Origin()].all.insert(descriptor)
        if localPort > 0 { origins[origin]?.byLocalPort[localPort] = descriptor }
        assign(transfer, to: descriptor)
    }

    mutating func close(_ descriptor: CInt) {
        guard let connection = connections.removeValue(forKey: descriptor) else { return }
        for user in connection.users { assigned[user] = nil }
        guard var origin = origins.removeValue(forKey: connection.origin) else { return }
        origin.all.remove(descriptor)
        origin.free.remove(descriptor)
        let port = connection.localPort
        if origin.byLocalPort[port] == descriptor { origin.byLocalPort[port] = nil }
        if !origin.all.isEmpty { origins[connection.origin] = origin }
    }

    /// Reserves an open connection for a transfer that is about to start. Returns `false` if no connection has room.
    ///
    /// - Parameter isQuiet: Returns whether a connection has nothing to read. Data on an idle HTTP/1.1 connection
    ///   usually means that the server has closed it, so the connection is not used again. HTTP/2 connections are not
    ///   checked, because servers may send frames at any time.
    mutating func reserve(
        _ origin: String,
        for transfer: TransferID,
        isQuiet: (CInt) -> Bool
    ) -> Bool {
        while let descriptor = origins[origin]?.free.first, let connection = connections[descriptor] {
            if connection.isMultiplexed || isQuiet(descriptor) {
                assign(transfer, to: descriptor)
                return true
            }
            setCapacity(of: descriptor, to: 0)
        }
        return false
    }

    /// Records that libcurl has selected a connection for a transfer. The local port shows which one. A unix socket has
    /// none, so ``use(_:by:)`` must follow unless the connection is new.
    mutating func use(by transfer: TransferID, _ origin: String, localPort: Int) {
        guard localPort > 0 else {
            if assigned[transfer] == nil { unlocated[transfer] = origin }
            return
        }
        if let reserved = assigned[transfer], connections[reserved]?.localPort == localPort { return }
        assign(transfer, to: origins[origin]?.byLocalPort[localPort])
    }

    /// Whether ``use(_:by:)`` must follow for a transfer.
    var hasUnlocated: Bool { !unlocated.isEmpty }

    /// Records the connection that a transfer to a unix socket uses. Other transfers are ignored.
    mutating func use(_ descriptor: CInt, by transfer: TransferID) {
        guard let origin = unlocated[transfer], connections[descriptor]?.origin == origin else { return }
        assign(transfer, to: descriptor)
    }

    /// Sets the maximum number of transfers of the connection that a transfer uses.
    mutating func setCapacity(ofConnectionOf transfer: TransferID, to capacity: Int) {
        guard let descriptor = assigned[transfer] else { return }
        connections[descriptor]?.isMultiplexed = capacity > 1
        setCapacity(of: descriptor, to: capacity)
    }

    /// Records that libcurl did not use the connection that was reserved for a transfer. The connection counts as full:
    /// its capacity becomes its current number of transfers.
    mutating func reservationWasNotUsed(_ transfer: TransferID) {
        guard let descriptor = assigned[transfer] else { return }
        assign(transfer, to: nil)
        setCapacity(of: descriptor, to: connections[descriptor]?.users.count ?? 0)
    }

    /// Returns whether no transfer uses a connection or has reserved it, and the connection does not speak HTTP/2.
    func isIdleHTTP1(_ descriptor: CInt) -> Bool {
        guard let connection = connections[descriptor], !unlocated.values.contains(connection.origin) else {
            return false
        }
        return connection.users.isEmpty && !connection.isMultiplexed
    }

    /// Returns the connections to an origin that ``isIdleHTTP1(_:)`` describes.
    func idleHTTP1Connections(to origin: String) -> Set<CInt> {
        origins[origin]?.all.filter(isIdleHTTP1) ?? []
    }

    /// Returns the connection that a transfer uses or has reserved, if it is known to speak HTTP/1.1. If the connection
    /// is not known, returns all idle ones to the origin.
    func http1Connections(of transfer: TransferID, _ origin: String) -> Set<CInt> {
        let possible: Set<CInt> =
            assigned[transfer].map { [$0] }
            ?? origins[origin]?.all.filter { connections[$0]?.users.isEmpty ?? false } ?? []
        return possible.filter { connections[$0]?.isMultiplexed == false }
    }

    /// Returns the connection that a transfer uses or has reserved.
    func connection(of transfer: TransferID) -> CInt? { assigned[transfer] }

    /// Returns the connection of a transfer; `nil` if other transfers use it, too, or if there is none.
    func connection(onlyOf transfer: TransferID) -> CInt? {
        assigned[transfer].flatMap { connections[$0]?.users.count == 1 ? $0 : nil }
    }

    /// Releases the connection of a transfer.
    mutating func release(_ transfer: TransferID) { assign(transfer, to: nil) }

    private mutating func assign(_ transfer: TransferID, to descriptor: CInt?) {
        unlocated[transfer] = nil
        if let old = assigned.removeValue(forKey: transfer) {
            connections[old]?.users.remove(transfer)
            updateFree(old)
        }
        guard let descriptor else { return }
        assigned[transfer] = descriptor
        connections[descriptor]?.users.insert(transfer)
        updateFree(descriptor)
    }

    private mutating func setCapacity(of descriptor: CInt, to capacity: Int) {
        connections[descriptor]?.capacity = capacity
        updateFree(descriptor)
    }

    private mutating func updateFree(_ descriptor: CInt) {
        guard let connection = connections[descriptor] else { return }
        if connection.isFree {
            origins[connection.origin]?.free.insert(descriptor)
        } else {
            origins[connection.origin]?.free.remove(descriptor)
        }
    }
}
