internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetworkReachability

/// Follows the interfaces and addresses of this network namespace on its own thread. When a notification signals that
/// something may have changed, it reads the complete state again.
actor NetworkWatch {
    /// The handlers of events. They are called on the watch's thread, which receives no events during a call.
    struct Handlers: Sendable {
        /// Called with every received datagram, and when the kernel has dropped notifications.
        var onReceived: @Sendable (NotificationSocket.Received) -> Void = { _ in }
        /// Called with the initial state, and with the new state after changes. If it is `nil`, no state is read.
        var onSnapshot: (@Sendable (NetlinkSnapshot) -> Void)?
        /// Called when the kernel can no longer be queried. No other call follows.
        var onFailure: @Sendable (SystemError) -> Void = { _ in }
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let handlers: Handlers
    private let notifications: NotificationSocket
    private let requests: RequestSocket
    private var registration: EventLoop.Registration?
    /// Whether notifications were lost since the socket was last empty.
    private var hasOverrun = false
    private var isReadingDue = false

    /// The maximum number of datagrams that are taken in a row, so that a burst of them does not delay reading the
    /// state.
    private static let longestDrain = 256

    /// Starts to follow the interfaces and addresses.
    ///
    /// - Throws: The kernel's error.
    static func starting(_ handlers: Handlers) throws(CommandError) -> NetworkWatch {
        do {
            let loop = try EventLoop(label: "nw-monitor")
            let watch = try NetworkWatch(loop: loop, handlers: handlers)
            loop.execute { watch.assumeIsolated { $0.start() } }
            return watch
        } catch {
            throw failure(error)
        }
    }

    static func failure(_ error: SystemError) -> CommandError {
        CommandError(.unknown, "netlink is unavailable (\(error)), so the state is unknown")
    }

    private init(loop: EventLoop, handlers: Handlers) throws(SystemError) {
        self.loop = loop
        self.handlers = handlers
        // Opened before the request socket, so that no change during the first reading is missed.
        notifications = try NotificationSocket()
        requests = try RequestSocket()
    }

    private func start() {
        do throws(SystemError) {
            registration = try loop.register(notifications.descriptor, for: .read) { [weak self] _ in
                self?.assumeIsolated { $0.drain() }
            }
            read()
        } catch {
            fail(error)
        }
    }

    private func drain() {
        do throws(SystemError) {
            for _ in 0..<Self.longestDrain {
                guard let received = try notifications.next() else {
                    // The kernel has dropped all notifications between the overrun and now, so the state is read again.
                    if hasOverrun { scheduleReading() }
                    hasOverrun = false
                    return
                }
                handlers.onReceived(received)
                if received == .overrun { hasOverrun = true }
                if received.mayChangeInterfaces { scheduleReading() }
            }
        } catch {
            fail(error)
        }
    }

    private func scheduleReading() {
        guard !isReadingDue else { return }
        isReadingDue = true
        // The delay combines the notifications of a burst.
        loop.schedule(at: .now + PathMonitor.Configuration.defaultSettle) { [weak self] in
            self?.assumeIsolated { $0.read() }
        }
    }

    private func read() {
        isReadingDue = false
        guard let onSnapshot = handlers.onSnapshot else { return }
        do throws(SystemError) {
            onSnapshot(try NetlinkSnapshot(reading: requests))
        } catch {
            fail(error)
        }
    }

    private func fail(_ error: SystemError) {
        if let registration { loop.unregister(registration) }
        registration = nil
        handlers.onFailure(error)
    }
}

extension NotificationSocket.Received {
    /// Whether interfaces or addresses may have changed. Route changes do not count, because there can be thousands.
    fileprivate var mayChangeInterfaces: Bool {
        guard case .datagram(let bytes) = self else { return true }
        return NetlinkNotification.all(in: bytes).contains { notification in
            switch notification.kind {
            case .link, .address, .malformed: true
            case .route, .rule, .nextHop, .setting, .other: false
            }
        }
    }
}
