internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The monitor's two netlink sockets: one for notifications, one for requests. Confined to the monitor's thread.
final class NetlinkConnection {
    let events: EventSocket
    let reader: PathReader
    private let loop: EventLoop
    private let registration: EventLoop.Registration

    /// Opens both sockets. The notification socket comes first, so that no change is missed while the state is first
    /// read.
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
                classes: configuration.faults.receivedClasses
            )
        }
        let requests = try loop.inNetworkNamespace { () throws(SystemError) in try RequestSocket() }
        reader = PathReader(
            socket: requests,
            generalAddresses: configuration.generalAddresses,
            // sysfs shows the namespace in which it was mounted.
            sysfs: configuration.networkNamespace == nil ? .system : .none
        )
        // An inherited socket may be full. It then receives nothing until it has been emptied once.
        _ = try events.drain()
        self.loop = loop
        registration = try loop.register(events.descriptor, for: .read) { _ in onEvents() }
    }

    deinit {
        loop.unregister(registration)
    }
}
