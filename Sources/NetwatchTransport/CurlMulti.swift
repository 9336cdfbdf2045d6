internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A multi handle on an event loop: one pool of connections with the transfers that use it.
///
/// Lives on the loop's thread. libcurl says which descriptors and which timeout it waits for, and is told
/// when they are ready (`curl_multi_socket_action(3)`). ``close()`` comes before the last reference goes:
/// closing pooled connections calls back.
final class CurlMulti {
    private let loop: EventLoop
    private let onReadiness: @Sendable (CInt, EventLoop.Readiness) -> Void
    private let onTimeout: @Sendable () -> Void
    private var handle: MultiHandle?
    private var registrations: [CInt: EventLoop.Registration] = [:]
    private var timer: EventLoop.Timer?
    private var transfers: [TransferID: Transfer] = [:]
    /// Transfers whose descriptor the loop would not watch.
    private var unwatched: [TransferID: SystemError] = [:]

    /// - Parameters:
    ///   - onReadiness: Called on the loop; answers with ``descriptorIsReady(_:_:)``.
    ///   - onTimeout: Called on the loop; answers with ``timeoutHasPassed()``.
    init?(
        loop: EventLoop,
        onReadiness: @escaping @Sendable (CInt, EventLoop.Readiness) -> Void,
        onTimeout: @escaping @Sendable () -> Void
    ) {
        guard let handle = MultiHandle() else { return nil }
        self.loop = loop
        self.onReadiness = onReadiness
        self.onTimeout = onTimeout
        let multi = handle.rawValue
        self.handle = consume handle
        let context = Unmanaged.passUnretained(self).toOpaque()
        netwatch_multi_set_socket_callback(
            multi,
            { easy, descriptor, interest, context, _ in
                Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue()
                    .watch(descriptor, interest, for: easy)
                return 0
            },
            context
        )
        netwatch_multi_set_timer_callback(
            multi,
            { _, milliseconds, context in
                Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue().wait(milliseconds)
                return 0
            },
            context
        )
    }

    var isIdle: Bool { transfers.isEmpty }

    // MARK: Transfers

    /// Starts a transfer. Its end comes from ``remove(_:)`` or one of the two functions below.
    func add(_ transfer: Transfer) throws(TransferFailure) {
        let result = withHandle { curl_multi_add_handle($0, transfer.handle) }
        guard result == CURLM_OK else {
            throw .refused(CURLE_FAILED_INIT, String(cString: curl_multi_strerror(result)))
        }
        transfers[transfer.id] = transfer
    }

    /// Takes a transfer out before it has ended.
    func remove(_ id: TransferID) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        unwatched[id] = nil
        _ = withHandle { curl_multi_remove_handle($0, transfer.handle) }
        return transfer
    }

    /// Changes what of a transfer stands still, and returns the ids of the transfers that ended. libcurl may
    /// deliver what it had kept, so this is not for its callbacks.
    func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) -> [TransferID] {
        guard let transfer = transfers[id] else { return [] }
        let code = change(transfer)
        guard code == CURLE_OK else {
            _ = remove(id)
            transfer.finish(code)
            return [id]
        }
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends every transfer and closes every connection.
    func close() {
        for id in transfers.keys {
            remove(id)?.finish(CURLE_ABORTED_BY_CALLBACK, message: "the transfer engine is gone")
        }
        handle = nil
        wait(-1)
        for registration in registrations.values { loop.unregister(registration) }
        registrations = [:]
    }

    // MARK: What happened on the loop

    /// Lets libcurl work on a descriptor and returns the ids of the transfers that ended.
    func descriptorIsReady(_ descriptor: CInt, _ readiness: EventLoop.Readiness) -> [TransferID] {
        var events: CInt = 0
        if readiness.contains(.readable) { events |= CURL_CSELECT_IN }
        if readiness.contains(.writable) { events |= CURL_CSELECT_OUT }
        if readiness.contains(.error) || readiness.contains(.hangUp) { events |= CURL_CSELECT_ERR }
        return act(on: descriptor, events)
    }

    /// Lets libcurl look at its timeouts and returns the ids of the transfers that ended.
    func timeoutHasPassed() -> [TransferID] {
        timer = nil
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    private func act(on descriptor: CInt, _ events: CInt) -> [TransferID] {
        var running: CInt = 0
        _ = withHandle { curl_multi_socket_action($0, descriptor, events, &running) }
        return finishEnded() + finishUnwatched()
    }

    private func finishEnded() -> [TransferID] {
        var ended: [TransferID] = []
        var remaining: CInt = 0
        while let message = withHandle({ curl_multi_info_read($0, &remaining) })?.pointee {
            guard message.msg == CURLMSG_DONE, let transfer = Transfer.of(message.easy_handle) else {
                continue
            }
            let code = message.data.result
            _ = remove(transfer.id)
            transfer.finish(code)
            ended.append(transfer.id)
        }
        return ended
    }

    private func finishUnwatched() -> [TransferID] {
        guard !unwatched.isEmpty else { return [] }
        let failed = unwatched
        for (id, error) in failed {
            remove(id)?.finish(CURLE_FAILED_INIT, errno: error.errno, message: "\(error)")
        }
        return Array(failed.keys)
    }

    // MARK: What libcurl waits for

    private func watch(_ descriptor: CInt, _ interest: CInt, for easy: UnsafeMutableRawPointer?) {
        do throws(SystemError) {
            switch interest {
            case CURL_POLL_IN: try watch(descriptor, for: .read)
            case CURL_POLL_OUT: try watch(descriptor, for: .write)
            case CURL_POLL_INOUT: try watch(descriptor, for: [.read, .write])
            default: registrations.removeValue(forKey: descriptor).map(loop.unregister)
            }
        } catch {
            if let easy, let transfer = Transfer.of(easy) { unwatched[transfer.id] = error }
        }
    }

    private func watch(_ descriptor: CInt, for interest: EventLoop.Interest) throws(SystemError) {
        if let registration = registrations[descriptor] {
            return try loop.update(registration, to: interest)
        }
        let onReadiness = onReadiness
        registrations[descriptor] = try loop.register(descriptor, for: interest) { readiness in
            onReadiness(descriptor, readiness)
        }
    }

    /// libcurl forbids working in this callback, so that even no time at all waits for the loop.
    private func wait(_ milliseconds: Int) {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard milliseconds >= 0 else { return }
        timer = loop.schedule(at: .now + .milliseconds(milliseconds), onTimeout)
    }

    private func withHandle<Result>(_ body: (UnsafeMutableRawPointer) -> Result) -> Result {
        guard let multi = handle?.rawValue else { preconditionFailure("the pool was closed") }
        return body(multi)
    }
}
