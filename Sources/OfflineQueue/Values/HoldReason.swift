/// The reason why a request is held instead of retried.
public enum HoldReason: String, Hashable, Sendable, CaseIterable {
    /// The server's certificate was not trusted. Retried automatically after 5 to 15 minutes, or when the path changes,
    /// because captive portals and wrong clocks cause the same error.
    case trust
    /// This machine is misconfigured, for example a certificate file or a cipher list. Retried after
    /// ``OfflineQueue/flush()`` or a restart.
    case configuration
    /// The server requires credentials. Retried after ``OfflineQueue/flush()`` or a restart.
    case auth
    /// The server may have applied the request, and a second attempt may apply it twice. It waits for
    /// ``OfflineQueue/retry(_:newKey:)`` or ``OfflineQueue/cancel(_:)``.
    case ambiguous
    /// A user or caller held it with ``OfflineQueue/hold(_:)``.
    case user
    /// A request that it depends on was given up or cancelled.
    case dependency

    /// The reasons whose cause a restart or a flush may have removed.
    package static let releasableByRestart: Set<HoldReason> = [.trust, .configuration, .auth]
}
