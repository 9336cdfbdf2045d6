internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The two netlink sockets of a monitor: one for notifications, one for requests. Confined to the monitor's thread.
///
/// With one socket, an overrun of notifications would also drop replies to lookups.
final class NetlinkConnection {
    let events: EventSocket
    let reader: PathReader
    private let loop: EventLoop
    private let registration: EventLoop.Registration

    /// Opens both sockets and watches the notification socket.
    ///
    /// The notification socket is opened before anything is read, so that no change after the first lookup is missed.
    ///
    /// - Parameter onEvents: Called on the loop's thread when notifications are pending.
    /// - Throws: ``SystemError`` if a socket cannot be opened or watched.
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
        let routes = ConnectionRoutes(
            socket: requests,
            ignoredFamilies: configuration.faults.ignoredSources
        ) { (query) throws(SystemError) in
            if let failure = configuration.faults.sourceFailure?() { throw failure }
            return try loop.inNetworkNamespace { () throws(SystemError) in
                try ConnectLookup.connect(for: query)
            }
        }
        reader = PathReader(
            socket: requests,
            routes: routes,
            generalAddresses: configuration.generalAddresses,
            // The mounted sysfs shows the process's namespace, not the one in the configuration.
            sysfs: configuration.networkNamespace == nil ? .system : .none
        )
        // The buffer of an inherited socket may be full. The kernel then drops all notifications until the buffer has
        // been empty once.
        _ = try events.drain()
        self.loop = loop
        registration = try loop.register(events.descriptor, for: .read) { _ in onEvents() }
    }

    deinit {
        loop.unregister(registration)
    }
}
