/// The timeouts that libcurl enforces, reduced by the time that has passed since the transfer was started.
struct TransferTimeouts {
    /// The time limit for the connection and the TLS handshake.
    let connect: Duration
    /// The time limit for the whole transfer; `nil` for no limit.
    let total: Duration?
}
