internal import NetwatchEventLoop

extension TransferEngine {
    /// Creates a connection for arbitrary bytes. It does not connect until it is started.
    ///
    /// - Parameters:
    ///   - host: A name or an address. IPv6 addresses have no brackets.
    ///   - port: 1 to 65535. With other values the connection fails when it is started.
    ///   - connectTimeout: The time allowed for the name lookup and connecting together. Default 15 s.
    ///   - whenEnded: Called on the engine's thread when nothing more can be read or written, after all completions so
    ///     far.
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
