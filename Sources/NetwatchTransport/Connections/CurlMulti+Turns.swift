internal import CNetwatchCurl
internal import NetwatchEventLoop

// The turns of a multi handle: libcurl handles an event of the loop, and the results are collected.

extension CurlMulti {
    /// The result of one call of libcurl.
    struct Turn {
        /// The transfers that have ended.
        var ended: [TransferID] = []
        /// The transfers among them that have shown that the version of HTTP does not work with their origin.
        var failedVersion: [TransferID] = []
        /// The transfers that the engine must add again with another connection. If a transfer has a
        /// ``Transfer/question``, the program must answer it first.
        var unconnected: [Transfer] = []
        /// The transfers that reached milestones in this turn.
        var milestones: [(id: TransferID, reached: Transfer.Milestones)] = []

        /// Removes everything, but keeps memory for the next turn.
        mutating func removeAll() {
            ended.removeAll(keepingCapacity: true)
            failedVersion = []
            unconnected = []
            milestones.removeAll(keepingCapacity: true)
        }
    }

    /// Lets libcurl handle a ready descriptor.
    func descriptorIsReady(_ descriptor: CInt, _ readiness: EventLoop.Readiness) -> Turn {
        guard sockets.isAwaited(descriptor) else {
            // The readiness is outdated if libcurl has read the data since, for another event.
            guard !WatchedSocket.isQuiet(descriptor) else { return Turn() }
            // The server has closed an unused connection, or has sent data that belongs to no request. A response that
            // comes before its request must not be used (RFC 9112 §9.2). If a transfer may be using the connection,
            // `discardUnreadData(to:)` decides later: the loop would report the same data again in every turn.
            guard connections.isIdleHTTP1(descriptor) else {
                sockets.unwatch(descriptor)
                return Turn()
            }
            discard(descriptor)
            return Turn()
        }
        return act(on: descriptor, readiness.curlEvents)
    }

    /// Lets libcurl check its timeouts.
    func timeoutHasPassed() -> Turn {
        guard timer.fire(), handle != nil else { return Turn() }
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends the transfers that have exceeded a time limit, and those with which libcurl does not continue although the
    /// response is complete.
    func endLateTransfers() -> Turn {
        limitTimer = nil
        let now = BootInstant.now
        let answered = transfers.values.filter { isStuckAfterResponse($0, at: now) }.map(\.id)
        for id in answered { remove(id)?.finish(CURLE_OK) }
        let late = transfers.values.compactMap { transfer in
            transfer.timeoutMessage(at: now).map { (id: transfer.id, message: $0) }
        }
        for (id, message) in late {
            discardUnacknowledged(of: id)
            remove(id)?.finish(CURLE_OPERATION_TIMEDOUT, message: message)
        }
        if !transfers.isEmpty { checkLimits(by: transfers.values.lazy.compactMap(\.deadline).min()) }
        return endTurn(ending: answered + late.map(\.id))
    }

    /// Ends a turn in which netwatch, not libcurl, has ended these transfers.
    func endTurn(ending ended: [TransferID]) -> Turn {
        turn.removeAll()
        turn.ended += ended
        deliverEvents()
        return turn
    }

    /// The shortest time from one check to the next: 10 ms. Each check visits all transfers.
    private static let shortestPause = Duration.milliseconds(10)

    /// Schedules the next check of the time limits, at the latest after ``IdleTracker/interval``.
    ///
    /// - Parameter deadline: The time at which a transfer must be checked; `nil` if none must be.
    func checkLimits(by deadline: BootInstant?) {
        if let timer = limitTimer {
            guard let deadline, deadline < timer.deadline else { return }
            loop.cancel(timer)
        }
        let pause = deadline.map { max(Self.shortestPause, $0 - BootInstant.now) } ?? IdleTracker.interval
        limitTimer = loop.scheduleLimit(min(pause, IdleTracker.interval), onLimitCheck)
    }

    /// Lets libcurl handle events, and collects the results.
    ///
    /// No callback and no delivered event may call this function again: ``turn`` would lose the results so far. The
    /// engine enqueues all calls that callers make meanwhile.
    func act(on descriptor: CInt, _ events: CInt) -> Turn {
        var running: CInt = 0
        watchdog.turnWillBegin()
        _ = withHandle { curl_multi_socket_action($0, descriptor, events, &running) }
        watchdog.turnDidEnd()
        let aborted = markAborted()
        turn.removeAll()
        finishEnded()
        if !unwatched.isEmpty { turn.ended += finishUnwatched() }
        if !aborted.isEmpty { turn.ended += finishAborted(aborted) }
        deliverEvents()
        // The transfers must not be retained until the next turn.
        defer { turn.unconnected = [] }
        return turn
    }

    /// Delivers the events of this turn. Records the milestones that the transfers reached.
    private func deliverEvents() {
        guard !withEvents.isEmpty else { return }
        swap(&withEvents, &delivering)
        defer { delivering.removeAll(keepingCapacity: true) }
        for transfer in delivering {
            let reached = transfer.deliverEvents()
            if !reached.isEmpty { turn.milestones.append((transfer.id, reached)) }
        }
    }

    /// Marks the transfers whose connections the watchdog has shut down. Returns these connections.
    private func markAborted() -> [TurnWatchdog.AbortedConnection] {
        let connections = sockets.takeAborted()
        for connection in connections {
            for transfer in transfers.values where transfer.ends == connection.ends {
                transfer.abort(afterUselessBytes: connection.bytes)
            }
        }
        return connections
    }

    /// Ends the marked transfers that libcurl has not ended itself: it would retry them over another connection, or has
    /// not noticed the shutdown yet.
    private func finishAborted(_ connections: [TurnWatchdog.AbortedConnection]) -> [TransferID] {
        let ids = transfers.values.filter(\.isAborted).map(\.id)
        for id in ids {
            // If libcurl has not noticed the shutdown, it would keep the connection in the pool.
            transfers[id]?.closeConnectionAfterUse()
            remove(id)?.finish(CURLE_RECV_ERROR)
        }
        sockets.forgetAborted(connections)
        return ids
    }

    private func finishEnded() {
        var remaining: CInt = 0
        while let message = withHandle({ curl_multi_info_read($0, &remaining) })?.pointee {
            guard message.msg == CURLMSG_DONE, let transfer = Transfer.of(message.easy_handle) else {
                continue
            }
            let code = message.data.result
            if transfer.mayReconnect(after: code) || transfer.mayAskProgram(after: code) {
                detach(transfer)
                turn.unconnected.append(transfer)
            } else {
                _ = remove(transfer.id)
                transfer.finish(code)
                if transfer.leavesCleanHandle(after: code) { unusedHandles.add(transfer.handle) }
                turn.ended.append(transfer.id)
                if transfer.showsFailedVersion(after: code) { turn.failedVersion.append(transfer.id) }
            }
        }
    }

    private func finishUnwatched() -> [TransferID] {
        let failed = unwatched
        for (id, error) in failed {
            remove(id)?.finish(CURLE_FAILED_INIT, errno: error.errno, message: "\(error)")
        }
        return Array(failed.keys)
    }
}
