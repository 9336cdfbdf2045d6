internal import Glibc
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

/// Writes the notifications that a monitor receives to a recording.
final class NotificationRecorder: Sendable {
    private struct State: ~Copyable {
        var writer: NetlinkRecording.Writer
        var count = 0
    }

    private let path: ArgumentBytes
    private let state: Lock<State>

    /// Creates the file.
    ///
    /// - Throws: An error if the file cannot be created.
    init(_ path: ArgumentBytes, replacesExisting: Bool) throws(CommandError) {
        self.path = path
        do {
            let writer = try NetlinkRecording.Writer.creating(
                path.cString,
                replacesExisting: replacesExisting
            )
            state = Lock(State(writer: writer))
        } catch {
            throw Self.failure(path, error)
        }
    }

    /// Appends a record.
    ///
    /// - Throws: An error with the reason, and with the number of complete records as a hint.
    func add(_ record: NetlinkRecording.Record) throws(CommandError) {
        do {
            try state.withLock { state throws(SystemError) in
                try state.writer.add(record)
                state.count += 1
            }
        } catch {
            throw CommandError(
                .unknown,
                "could not write to `\(path)`: \(errnoDescription(error.errno))",
                hint: "the \(state.withLock { $0.count }) earlier records are complete and can be replayed"
            )
        }
    }

    private static func failure(_ path: ArgumentBytes, _ error: SystemError) -> CommandError {
        let prefix = "could not record to `\(path)`: "
        switch error.errno {
        case EEXIST: return CommandError(.usage, prefix + "the file exists", hint: "`--force` replaces it")
        case EINVAL: return CommandError(.usage, prefix + "it is not a regular file")
        default: return CommandError(.usage, prefix + errnoDescription(error.errno))
        }
    }
}
