/// The open connections of a multi handle, and which of them can take another transfer. A value without I/O.
///
/// libcurl alone decides which connection it uses, and does not tell beforehand. So this is a forecast: right nearly always,
/// and where it is wrong the transfer has to be given a connection of its own (see ``Transfer/isWithoutSocket``).
struct ConnectionTable {
    private struct Connection {
        let origin: String
        let localPort: Int
        /// The transfers that use it, or are to.
        var users: Set<TransferID> = []
        /// How many may at a time.
        var capacity: Int

        var isFree: Bool { users.count < capacity }
    }

    private struct Origin {
        var all: Set<CInt> = []
        var free: Set<CInt> = []
    }

    private var connections: [CInt: Connection] = [:]
    private var origins: [String: Origin] = [:]
    /// Which connection a transfer uses, or is to use.
    private var taken: [TransferID: CInt] = [:]

    /// A connection was made for a transfer.
    ///
    /// - Parameter capacity: How many transfers it may carry at a time, as far as is known.
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

    /// Finds a connection for a transfer that is about to be begun. Returns whether there is one.
    ///
    /// - Parameter isQuiet: Whether nothing has come over a connection that no transfer uses. Where something has, it is
    ///   mostly the end, and the connection is not thought of any more. A server of HTTP/2 may send at any time.
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

    /// A transfer goes over a connection to an origin.
    mutating func use(by transfer: TransferID, _ origin: String, localPort: Int) {
        if let reserved = taken[transfer], connections[reserved]?.localPort == localPort { return }
        let used = origins[origin]?.all.first { connections[$0]?.localPort == localPort }
        move(transfer, to: used)
    }

    /// It is known how many transfers the connection carries at a time.
    mutating func setCapacity(ofConnectionOf transfer: TransferID, to capacity: Int) {
        taken[transfer].map { limit($0, to: capacity) }
    }

    /// libcurl did not take the connection that was reserved, which has no room then.
    mutating func isRefused(_ transfer: TransferID) {
        guard let descriptor = taken[transfer] else { return }
        move(transfer, to: nil)
        limit(descriptor, to: connections[descriptor]?.users.count ?? 0)
    }

    /// A transfer has ended.
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
