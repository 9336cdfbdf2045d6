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
