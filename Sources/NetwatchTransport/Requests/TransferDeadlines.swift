internal import NetwatchEventLoop

/// The times until which a transfer that libcurl runs must have reached its milestones.
///
/// The engine judges them, not libcurl (`CURLOPT_TIMEOUT_MS`): libcurl compares the time with its timeouts before it
/// reads what has arrived. After the process was stopped for longer than a timeout, it would discard the response.
struct TransferDeadlines {
    /// The end of the time for the connection and the TLS handshake.
    let connection: BootInstant
    /// The end of the time for the whole transfer; `nil` for no limit.
    let end: BootInstant?
}
