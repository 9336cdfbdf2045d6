internal import NetwatchEventLoop

// Which connections there are, and whether one can be used again.

extension CurlMulti {
    /// Whether an open connection is likely to serve a transfer, for which it is kept then.
    func reserveConnection(to origin: String, for transfer: TransferID) -> Bool {
        connections.reserve(origin, for: transfer) { WatchedSocket.isQuiet($0) }
    }

    /// libcurl has taken the connection that was made for a transfer.
    func opened(_ descriptor: CInt, for transfer: Transfer) {
        connections.open(
            descriptor,
            to: transfer.url.origin,
            localPort: WatchedSocket.localPort(of: descriptor),
            // What was agreed on in the TLS handshake is known when the response begins.
            capacity: transfer.url.isSecure ? WaitingRoom.streamsPerConnection : 1,
            for: transfer.id
        )
    }

    /// libcurl has chosen the connection that a transfer goes over.
    func use(by transfer: Transfer) {
        connections.use(by: transfer.id, transfer.url.origin, localPort: transfer.ends.localPort)
    }

    /// A server speaks HTTP/2, or not.
    func knows(_ isMultiplexed: Bool, ofConnectionOf transfer: TransferID) {
        let capacity = isMultiplexed ? WaitingRoom.streamsPerConnection : 1
        connections.setCapacity(ofConnectionOf: transfer, to: capacity)
    }
}
