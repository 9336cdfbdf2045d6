/// The reason why a request is held: the queue does not send the request until the hold ends.
///
/// ``OfflineQueue/release(_:)`` and ``OfflineQueue/retry(_:newKey:)`` end every hold, except the hold of a request that
/// cannot be decrypted.
public enum HoldReason: String, Hashable, Sendable, CaseIterable {
    /// The server's certificate was not trusted.
    ///
    /// The queue tries the request again after 5 to 15 minutes (``QueuedRequest/nextTry``), or when the path changes: a
    /// captive portal or a wrong clock may have caused the error.
    case trust
    /// A setting of this machine is wrong, for example a certificate file or a cipher list. Or a constraint of the
    /// request cannot be evaluated here: its time zone was removed, or a newer version stored it.
    /// ``QueuedRequest/lastError`` is the reason. The hold ends with ``OfflineQueue/flush(host:lane:)`` or a restart,
    /// if the cause is gone by then.
    case configuration
    /// The server requires credentials, or the request's credential cannot be used; ``QueuedRequest/lastError`` is the
    /// reason. The hold ends when the credential changes (``OfflineQueue/register(_:as:)``), when the request gets
    /// another one (``OfflineQueue/setCredential(_:of:)``), with ``OfflineQueue/flush(host:lane:)``, or with a restart.
    ///
    /// The queue also tries one of the requests with the same credential and origin again, at
    /// ``QueuedRequest/nextTry``: after 5 minutes, and then at intervals that double up to an hour. A delivery of any
    /// request with this credential to this origin releases the others; see
    /// <doc:UsingCredentials#When-a-server-rejects-a-credential>.
    case auth
    /// The server may have applied the request, and might apply it a second time if it were sent again. A user must
    /// decide: ``OfflineQueue/retry(_:newKey:)`` and ``OfflineQueue/release(_:)`` send it again,
    /// ``OfflineQueue/cancel(_:)`` gives it up.
    case ambiguous
    /// A user or program called ``OfflineQueue/hold(_:)``. Or the request was imported, and a user must check it first:
    /// ``QueuedRequest/lastError`` is the reason, for example that exports contain no signatures of URLs.
    case user
    /// A dependency of the request (``EnqueueOptions/dependencies``) was given up or cancelled.
    case dependency
    /// The request is encrypted, and cannot be decrypted: its encryption key is missing, or its row was changed;
    /// ``QueuedRequest/lastError`` says which. If the key is missing, add it to the file
    /// ``OfflineQueue/OfflineQueue/Configuration/encryptionKeyFile``: the hold ends when the queue is opened with it.
    /// If the row was changed, cancel the request. After the hold, ``QueuedRequest/lastError`` is again that of the
    /// last attempt.
    case key

    /// The reasons that end at a restart and at a flush, because the cause may be gone by then.
    package static let releasableByRestart: Set<HoldReason> = [.trust, .configuration, .auth, .key]
}
