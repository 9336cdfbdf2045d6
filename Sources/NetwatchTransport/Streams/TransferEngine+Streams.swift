internal import NetwatchEventLoop

extension TransferEngine {
    /// Creates a connection for arbitrary bytes. It begins to connect at ``StreamConnection/start()`` or
    /// ``StreamConnection/resume()``.
    ///
    /// - Parameters:
    ///   - host: A name or an IP address. IPv6 addresses have no brackets.
    ///   - port: The port, 1 to 65535. With other values, the connection fails when it begins to connect.
    ///   - connectTimeout: The time limit for name lookup and connection together. Default 15 s.
    ///   - whenEnded: Called on the engine's thread when nothing more can be read or written. All completions of
    ///     earlier reads and writes have been called by then. Default: does nothing.
    package nonisolated func stream(
        to host: String,
        port: Int,
        connectTimeout: Duration = .seconds(15),
        whenEnded: @escaping @Sendable () -> Void = {}
    ) -> StreamConnection {
        var failure: TransferFailure?
        do throws(SystemError) { try startThreads() } catch { failure = .notStarted(error) }
        return StreamConnection(
            to: host,
            port: port,
            connectTimeout: connectTimeout,
            loop: loop,
            resolver: resolver,
            preferredAddresses: preferredAddresses,
            failure: failure,
            whenEnded: whenEnded
        )
    }
}
