internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The monitor's two sockets: one that only listens, one that only asks. Confined to the monitor's thread.
final class NetlinkConnection {
    let events: EventSocket
    let reader: PathReader
    private let loop: EventLoop
    private let registration: EventLoop.Registration

    /// Opens both sockets, the listening one first: what changes while the state is first read is seen.
    ///
    /// - Throws: ``SystemError`` of the socket or the event loop.
    init(
        loop: EventLoop,
        configuration: PathMonitor.Configuration,
        onEvents: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        events = try loop.inNetworkNamespace { () throws(SystemError) in
            try EventSocket(
                receiveBufferSize: CInt(clamping: configuration.receiveBufferSize),
                inherited: configuration.inheritedSocket,
                classes: configuration.faults.heardClasses
            )
        }
        let requests = try loop.inNetworkNamespace { () throws(SystemError) in try RequestSocket() }
        reader = PathReader(socket: requests, configuration)
        // An inherited socket may be full, and deaf until it has been empty once.
        _ = try events.drain()
        self.loop = loop
        registration = try loop.register(events.descriptor, for: .read) { _ in onEvents() }
    }

    deinit {
        loop.unregister(registration)
    }
}
