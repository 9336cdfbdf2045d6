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

    /// Takes a transfer off its connection if the server has acknowledged nothing of what was sent for it. Returns the transfer
    /// then: it has to be connected again and added again.
    func leaveStalledConnection(_ id: TransferID) -> Transfer? {
        guard let descriptor = connections.connection(onlyOf: id), let transfer = transfer(id),
            !transfer.head.hasBegun, transfer.mayBegin
        else { return nil }
        let waiting = WatchedSocket.unacknowledgedBytes(of: descriptor)
        guard waiting > 0, waiting >= transfer.bytesSentNow else { return nil }
        WatchedSocket.discardsUnacknowledged(descriptor)
        detach(transfer)
        transfer.isUnsent()
        return transfer
    }

    /// Makes the kernel forget what it has not delivered of a transfer that is about to be ended.
    func discardUnacknowledged(of id: TransferID) {
        guard let descriptor = connections.connection(onlyOf: id) else { return }
        if WatchedSocket.unacknowledgedBytes(of: descriptor) > 0 {
            WatchedSocket.discardsUnacknowledged(descriptor)
        }
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
