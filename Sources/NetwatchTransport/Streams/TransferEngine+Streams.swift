internal import NetwatchEventLoop

extension TransferEngine {
    /// Makes a connection for bytes of any kind. It connects once it is told to.
    ///
    /// - Parameters:
    ///   - host: A name or an address, IPv6 without brackets.
    ///   - port: 1 to 65535; others end the connection once it is started.
    ///   - connectTimeout: How long the name lookup and connecting may take together. Default 15 s.
    ///   - whenEnded: Called on the engine's thread once nothing more can be read or written, after all
    ///     completions so far.
    package nonisolated func stream(
        to host: String,
        port: Int,
        connectTimeout: Duration = .seconds(15),
        whenEnded: @escaping @Sendable () -> Void = {}
    ) -> StreamConnection {
        var failure: TransferFailure?
        do throws(SystemError) { try begin() } catch { failure = .notBegun(error) }
        return StreamConnection(
            to: host,
            port: port,
            connectTimeout: connectTimeout,
            loop: loop,
            resolver: resolver,
            winners: winners,
            failure: failure,
            whenEnded: whenEnded
        )
    }
}
