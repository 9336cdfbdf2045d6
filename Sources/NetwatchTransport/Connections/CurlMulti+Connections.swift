internal import NetwatchEventLoop

// The open connections, and whether one can be reused.

extension CurlMulti {
    /// Reserves an open connection for a transfer. Returns whether there is one.
    func reserveConnection(to origin: String, for transfer: TransferID) -> Bool {
        connections.reserve(origin, for: transfer) { WatchedSocket.isQuiet($0) }
    }

    /// Records that libcurl took over the connection that was made for a transfer.
    func opened(_ descriptor: CInt, for transfer: Transfer) {
        connections.open(
            descriptor,
            to: transfer.url.origin,
            localPort: WatchedSocket.localPort(of: descriptor),
            // Whether the server speaks HTTP/2 is known only when the response begins.
            capacity: transfer.url.isSecure ? WaitingRoom.streamsPerConnection : 1,
            for: transfer.id
        )
    }

    /// Takes a transfer off its connection if the server has acknowledged nothing of its request, or, in a TLS
    /// handshake, has not acknowledged everything. Returns the transfer then: it has to be connected again and added
    /// again.
    func leaveStalledConnection(_ id: TransferID) -> Transfer? {
        guard let descriptor = connections.connection(onlyOf: id), let transfer = transfer(id),
            !transfer.head.hasBegun, transfer.mayBegin, transfer.feed.mayBeginAgain,
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0,
            WatchedSocket.acknowledgedBytes(of: descriptor) <= transfer.requestOffset ?? .max
        else { return nil }
        discardUnacknowledged(of: id)
        detach(transfer)
        transfer.isUnsent()
        return transfer
    }

    /// Makes the kernel forget what it has not delivered of a transfer that is about to be ended.
    func discardUnacknowledged(of id: TransferID) {
        guard let descriptor = connections.connection(onlyOf: id),
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0
        else { return }
        WatchedSocket.discardsUnacknowledged(descriptor)
        transfer(id)?.closesConnection()
    }

    /// The number of bytes that were sent over the connection of a transfer; `nil` if it is not TCP.
    func sentBytes(ofConnectionOf id: TransferID) -> UInt64? {
        connections.connection(of: id).flatMap(WatchedSocket.sentBytes)
    }

    /// Records the connection that libcurl selected for a transfer.
    func use(by transfer: Transfer) {
        connections.use(by: transfer.id, transfer.url.origin, localPort: transfer.ends.localPort)
    }

    /// Records whether the server speaks HTTP/2.
    func knows(_ isMultiplexed: Bool, ofConnectionOf transfer: TransferID) {
        let capacity = isMultiplexed ? WaitingRoom.streamsPerConnection : 1
        connections.setCapacity(ofConnectionOf: transfer, to: capacity)
    }
}
