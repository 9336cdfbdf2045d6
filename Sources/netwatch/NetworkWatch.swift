internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Follows the interfaces and addresses of this network namespace, on a thread of its own: notifications
/// say that something may have changed, and then everything is read anew.
actor NetworkWatch {
    /// What is told to whoever follows. Called on the watch's thread, where nothing is received meanwhile.
    struct Handlers: Sendable {
        /// Every datagram, and every loss, as it was received.
        var onReceived: @Sendable (NotificationSocket.Received) -> Void = { _ in }
        /// How things are, first of all and after changes. `nil`: nothing is read.
        var onSnapshot: (@Sendable (NetlinkSnapshot) -> Void)?
        /// The kernel can no longer be asked; nothing follows.
        var onFailure: @Sendable (SystemError) -> Void = { _ in }
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let handlers: Handlers
    private let notifications: NotificationSocket
    private let requests: RequestSocket
    private var registration: EventLoop.Registration?
    /// From an overrun until the socket has been empty.
    private var isDeaf = false
    private var isReadingDue = false

    /// How long after a change the rest of a burst is waited for before all is read.
    private static let settle = Duration.milliseconds(30)
    /// How many datagrams are taken in a row, so that readings are not put off by a storm.
    private static let longestDrain = 256

    /// Starts following.
    ///
    /// - Throws: What the kernel refused.
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
        CommandError(.unknown, "netlink is unavailable (\(error)), so it cannot be told")
    }

    private init(loop: EventLoop, handlers: Handlers) throws(SystemError) {
        self.loop = loop
        self.handlers = handlers
        // The listening one first: what changes during the first reading is seen.
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
                    // After an overrun everything was dropped until now.
                    if isDeaf { planReading() }
                    isDeaf = false
                    return
                }
                handlers.onReceived(received)
                if received == .overrun { isDeaf = true }
                if received.mayChangeInterfaces { planReading() }
            }
        } catch {
            fail(error)
        }
    }

    private func planReading() {
        guard !isReadingDue else { return }
        isReadingDue = true
        loop.schedule(at: .now + Self.settle) { [weak self] in self?.assumeIsolated { $0.read() } }
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
    /// Whether interfaces or addresses may be others than before; routes come and go by the thousand.
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
