internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Receives the kernel's notifications in this network namespace on its own thread.
actor NotificationWatch {
    /// The handlers of events. They are called on the watch's thread, which receives no notifications during a call.
    struct Handlers: Sendable {
        /// Called with the initial state, then with each datagram, and when the kernel has dropped notifications.
        var onRecord: @Sendable (NetlinkRecording.Record) -> Void
        /// Called when the kernel can no longer be queried. No other call follows.
        var onFailure: @Sendable (SystemError) -> Void
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let handlers: Handlers
    private let notifications: NotificationSocket
    private let requests: RequestSocket
    private var registration: EventLoop.Registration?

    /// The maximum number of datagrams that are taken in a row, so that the thread can do other work during a burst.
    private static let longestDrain = 256

    /// Starts to receive notifications.
    ///
    /// - Throws: The kernel's error.
    static func starting(_ handlers: Handlers) throws(CommandError) -> NotificationWatch {
        do {
            let loop = try EventLoop(label: "nw-monitor")
            let watch = try NotificationWatch(loop: loop, handlers: handlers)
            loop.execute { watch.assumeIsolated { $0.start() } }
            return watch
        } catch {
            throw CommandError(netlink: error)
        }
    }

    private init(loop: EventLoop, handlers: Handlers) throws(SystemError) {
        self.loop = loop
        self.handlers = handlers
        // Opened before the request socket, so that no change after the initial state is missed.
        notifications = try NotificationSocket()
        requests = try RequestSocket()
    }

    private func start() {
        do throws(SystemError) {
            for datagram in try requests.initialState() {
                handlers.onRecord(.init(now: .initialState(datagram)))
            }
            registration = try loop.register(notifications.descriptor, for: .read) { [weak self] _ in
                self?.assumeIsolated { $0.drain() }
            }
        } catch {
            fail(error)
        }
    }

    private func drain() {
        do throws(SystemError) {
            for _ in 0..<Self.longestDrain {
                guard let received = try notifications.next() else { return }
                handlers.onRecord(.init(now: .init(received)))
            }
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

extension NetlinkRecording.Content {
    fileprivate init(_ received: NotificationSocket.Received) {
        switch received {
        case .datagram(let bytes): self = .datagram(bytes)
        case .overrun: self = .overrun
        }
    }
}
