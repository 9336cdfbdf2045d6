internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

// The open connections of a multi handle and their sockets.

extension CurlMulti {
    /// Reserves an open connection for a transfer. Returns `false` if no connection has room.
    func reserveConnection(to origin: String, for transfer: TransferID) -> Bool {
        connections.reserve(origin, for: transfer) { WatchedSocket.isQuiet($0) }
    }

    /// Discards the idle connections to a unix socket that have data to read. Called before libcurl selects one of them
    /// for a transfer, because it does not report which one it selects. If one of them had data then, the transfer
    /// would need a new connection, and libcurl would close the selected one; see ``hasUnreadData(connectionOf:)``.
    func discardUnreadData(to origin: String) {
        for descriptor in connections.idleHTTP1Connections(to: origin)
        where !WatchedSocket.isQuiet(descriptor) {
            discard(descriptor)
        }
    }

    /// Makes libcurl close an idle connection instead of using it again. libcurl may keep the closed connection in its
    /// pool for a while, so the table must not contain it any more.
    func discard(_ descriptor: CInt) {
        WatchedSocket.discard(descriptor)
        sockets.remove(descriptor)
        connections.close(descriptor)
    }

    /// Removes a transfer from its connection if the connection is stalled. Returns the transfer, which must then be
    /// added again with a new connection. Returns `nil` if the transfer stays.
    ///
    /// A connection is stalled in two cases:
    ///
    /// - The request was sent, and the server's kernel has acknowledged none of its bytes.
    /// - The TLS handshake is under way, and the server's kernel has not acknowledged all bytes of this side.
    ///
    /// In both cases, no other transfer may use the connection, and the request must be allowed to be sent again.
    func leaveStalledConnection(_ id: TransferID) -> Transfer? {
        guard let descriptor = connections.connection(onlyOf: id), let transfer = transfers[id],
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0,
            transfer.mayRestart(acknowledged: WatchedSocket.acknowledgedBytes(of: descriptor))
        else { return nil }
        discardUnacknowledged(of: id)
        detach(transfer)
        transfer.markUnsent()
        return transfer
    }

    /// Returns whether a transfer uses a connection to the peer, and the head of its response has not arrived.
    func isUnanswered(_ id: TransferID, by peer: ConnectionPeer) -> Bool {
        guard let descriptor = connections.connection(of: id), let transfer = transfers[id] else {
            return false
        }
        return !transfer.head.isComplete && WatchedSocket.peer(of: descriptor) == peer
    }

    /// Returns whether libcurl does not continue with a transfer whose response is complete.
    func isStuckAfterResponse(_ transfer: Transfer, at now: BootInstant) -> Bool {
        transfer.isStuckAfterResponse(at: now) {
            guard let descriptor = connections.connection(of: transfer.id),
                !WatchedSocket.isQuiet(descriptor), WatchedSocket.unacknowledgedBytes(of: descriptor) == 0
            else { return nil }
            return WatchedSocket.readBytes(of: descriptor)
        }
    }

    /// Makes the kernel drop the data of a transfer that the server's kernel has not acknowledged. Must be called
    /// before the transfer is ended. Without it, the kernel could still deliver the request afterwards.
    func discardUnacknowledged(of id: TransferID) {
        guard let descriptor = connections.connection(onlyOf: id),
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0
        else { return }
        WatchedSocket.discardUnacknowledgedOnClose(descriptor)
        transfers[id]?.closeConnectionAfterUse()
    }

    // MARK: Descriptors of libcurl

    func watch(_ descriptor: CInt, _ interest: CInt, for easy: UnsafeMutableRawPointer?) {
        // Asks libcurl, so it is read only where it is needed: this function runs several times per transfer.
        var transfer: Transfer? { easy.flatMap(Transfer.of) }
        do throws(SystemError) {
            switch interest {
            case CURL_POLL_IN: try sockets.watch(descriptor, for: .read)
            case CURL_POLL_OUT: try sockets.watch(descriptor, for: .write)
            case CURL_POLL_INOUT: try sockets.watch(descriptor, for: [.read, .write])
            default: return release(descriptor, of: transfer)
            }
            if connections.hasUnlocated, let transfer { connections.use(descriptor, by: transfer.id) }
        } catch {
            if let transfer { unwatched[transfer.id] = error }
        }
    }

    /// Handles libcurl's message that it waits for nothing on a descriptor.
    ///
    /// A connection over which a request was sent stays registered, because it is usually needed again soon. Other
    /// connections were established too late or were not needed. They are removed immediately, because libcurl may
    /// close them without a callback.
    private func release(_ descriptor: CInt, of transfer: Transfer?) {
        if let transfer, transfer.isReady {
            sockets.setUnused(descriptor)
        } else {
            sockets.remove(descriptor)
        }
    }

    /// Closes a socket for libcurl.
    func closeSocket(_ descriptor: CInt) {
        sockets.remove(descriptor)
        connections.close(descriptor)
        close(descriptor)
    }
}

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
