internal import CNetwatchCurl

// What the callbacks of transfers need from their multi handle.

extension CurlMulti: TransferContext {
    func setCloseSocketCallback(of easy: borrowing EasyHandle) throws(TransferFailure) {
        try easy.setCloseSocketCallback { multi, descriptor in
            Unmanaged<CurlMulti>.fromOpaque(multi!).takeUnretainedValue().closeSocket(descriptor)
            return 0
        }
        try easy.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
    }

    func takeHandle(_ shape: TransferHandle.Shape) -> TransferHandle? { unusedHandles.take(shape) }

    func didOpen(_ descriptor: CInt, for transfer: Transfer) {
        sockets.observe(descriptor)
        connections.open(
            descriptor,
            to: transfer.connectionOrigin,
            localPort: WatchedSocket.localPort(of: descriptor),
            // An `https` server may speak HTTP/2. That is known only when the response begins.
            capacity: transfer.url.isSecure && !usesHTTP1 ? ConnectionTable.streamsPerConnection : 1,
            for: transfer.id
        )
    }

    func didSelectConnection(for transfer: Transfer) {
        let origin = transfer.connectionOrigin
        connections.use(by: transfer.id, origin, localPort: transfer.localPort)
    }

    func hasUnreadData(connectionOf transfer: Transfer) -> Bool? {
        var hasUnreadData: Bool?
        connections.forEachHTTP1Connection(of: transfer.id, transfer.connectionOrigin) { descriptor in
            hasUnreadData = hasUnreadData == true || !WatchedSocket.isQuiet(descriptor)
        }
        return hasUnreadData
    }

    func setMultiplexed(_ isMultiplexed: Bool, connectionOf id: TransferID) {
        let capacity = isMultiplexed ? ConnectionTable.streamsPerConnection : 1
        connections.setCapacity(ofConnectionOf: id, to: capacity)
    }

    func sentBytes(connectionOf id: TransferID) -> UInt64? {
        connections.connection(of: id).flatMap(WatchedSocket.sentBytes)
    }

    func recordUsefulBytes(_ count: Int) { watchdog.recordUsefulBytes(count) }

    func scheduleDelivery(to transfer: Transfer) { withEvents.append(transfer) }
}
