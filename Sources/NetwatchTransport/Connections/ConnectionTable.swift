/// The open connections of a multi handle, and which of them can take another transfer. A value without I/O.
///
/// libcurl alone selects the connection and does not report it in advance, so this is a prediction. When it is wrong, the
/// transfer needs its own connection (see ``Transfer/isWithoutSocket``).
struct ConnectionTable {
    private struct Connection {
        let origin: String
        let localPort: Int
        /// The transfers that use it or have reserved it.
        var users: Set<TransferID> = []
        /// The maximum number of users.
        var capacity: Int

        var isFree: Bool { users.count < capacity }
    }

    private struct Origin {
        var all: Set<CInt> = []
        var free: Set<CInt> = []
    }

    private var connections: [CInt: Connection] = [:]
    private var origins: [String: Origin] = [:]
    /// The connection that each transfer uses or has reserved.
    private var taken: [TransferID: CInt] = [:]

    /// Adds a connection that was made for a transfer.
    ///
    /// - Parameter capacity: The maximum number of transfers at a time, as far as it is known.
    mutating func open(
        _ descriptor: CInt,
        to origin: String,
        localPort: Int,
        capacity: Int,
        for transfer: TransferID
    ) {
        close(descriptor)
        connections[descriptor] = Connection(origin: origin, localPort: localPort, capacity: capacity)
        origins[origin, default: Origin()].all.insert(descriptor)
        move(transfer, to: descriptor)
    }

    mutating func close(_ descriptor: CInt) {
        guard let connection = connections.removeValue(forKey: descriptor) else { return }
        for user in connection.users { taken[user] = nil }
        guard var origin = origins.removeValue(forKey: connection.origin) else { return }
        origin.all.remove(descriptor)
        origin.free.remove(descriptor)
        if !origin.all.isEmpty { origins[connection.origin] = origin }
    }

    /// Reserves a connection for a transfer that is about to start. Returns whether there is one.
    ///
    /// - Parameter isQuiet: Whether an idle connection has nothing to read. Data on it usually means that the server closed
    ///   it, so it is not reserved again. HTTP/2 servers may send at any time and are not checked.
    mutating func reserve(
        _ origin: String,
        for transfer: TransferID,
        isQuiet: (CInt) -> Bool
    ) -> Bool {
        while let descriptor = origins[origin]?.free.first, let connection = connections[descriptor] {
            if connection.capacity > 1 || isQuiet(descriptor) {
                move(transfer, to: descriptor)
                return true
            }
            limit(descriptor, to: 0)
        }
        return false
    }

    /// Records the connection that libcurl selected for a transfer.
    mutating func use(by transfer: TransferID, _ origin: String, localPort: Int) {
        if let reserved = taken[transfer], connections[reserved]?.localPort == localPort { return }
        let used = origins[origin]?.all.first { connections[$0]?.localPort == localPort }
        move(transfer, to: used)
    }

    /// Sets the maximum number of transfers of the connection that a transfer uses.
    mutating func setCapacity(ofConnectionOf transfer: TransferID, to capacity: Int) {
        taken[transfer].map { limit($0, to: capacity) }
    }

    /// libcurl did not use the connection that was reserved, so it has no capacity left.
    mutating func isRefused(_ transfer: TransferID) {
        guard let descriptor = taken[transfer] else { return }
        move(transfer, to: nil)
        limit(descriptor, to: connections[descriptor]?.users.count ?? 0)
    }

    /// The connection that a transfer uses or has reserved.
    func connection(of transfer: TransferID) -> CInt? { taken[transfer] }

    /// The connection of a transfer, if no other transfer uses it.
    func connection(onlyOf transfer: TransferID) -> CInt? {
        taken[transfer].flatMap { connections[$0]?.users.count == 1 ? $0 : nil }
    }

    /// Releases the connection of a transfer.
    mutating func leave(_ transfer: TransferID) { move(transfer, to: nil) }

    private mutating func move(_ transfer: TransferID, to descriptor: CInt?) {
        if let old = taken.removeValue(forKey: transfer) {
            connections[old]?.users.remove(transfer)
            refile(old)
        }
        guard let descriptor else { return }
        taken[transfer] = descriptor
        connections[descriptor]?.users.insert(transfer)
        refile(descriptor)
    }

    private mutating func limit(_ descriptor: CInt, to capacity: Int) {
        connections[descriptor]?.capacity = capacity
        refile(descriptor)
    }

    private mutating func refile(_ descriptor: CInt) {
        guard let connection = connections[descriptor] else { return }
        if connection.isFree {
            origins[connection.origin]?.free.insert(descriptor)
        } else {
            origins[connection.origin]?.free.remove(descriptor)
        }
    }
}
