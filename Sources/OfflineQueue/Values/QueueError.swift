/// An error that the queue throws.
public struct QueueError: Error, Hashable, Sendable {
    /// The kind of error, for programs.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The URL is not an absolute `http` or `https` URL with a host, or it contains a user name, a password or a
        /// query item with a secret.
        case invalidURL = "invalid_url"
        /// The method is not a token of RFC 9110, is CONNECT or TRACE, or is HEAD with a body.
        case invalidMethod = "invalid_method"
        /// A header has an invalid name or value, must not be set by the caller, or makes the headers too large.
        case invalidHeader = "invalid_header"
        /// A header contains a secret. The queue stores no secrets; see ``EnqueueOptions/credential``.
        case secretHeader = "secret_header"
        /// The body is longer than ``QueueRequest/maximumBodyBytes``, or the request would exceed ``QueueLimits`` even
        /// in an empty queue.
        case bodyTooLarge = "body_too_large"
        /// An option in ``EnqueueOptions`` or an argument is invalid.
        case invalidOption = "invalid_option"
        /// A setting of ``OfflineQueue/Configuration`` is invalid. Nothing was opened.
        case invalidConfiguration = "invalid_configuration"
        /// The request does not fit into the queue's limits or onto the disk. Nothing was changed.
        case queueFull = "queue_full"
        /// The request or upload does not fit into the quota of its user. Nothing was changed.
        case quotaExceeded = "quota_exceeded"
        /// The request or upload belongs to another user. Nothing was changed.
        case notSubmitter = "not_submitter"
        /// A request depends on another one that the queue does not know or has given up.
        case unknownDependency = "unknown_dependency"
        /// The dependencies of requests form a cycle.
        case cyclicDependency = "cyclic_dependency"
        /// No request has this id.
        case unknownRequest = "unknown_request"
        /// The queue knows the id, but for a request with other content. The message names the difference. Nothing was
        /// changed.
        case idConflict = "id_conflict"
        /// No lane has the given host and label. Nothing was changed.
        case unknownLane = "unknown_lane"
        /// The file or upload to import is not a complete, unchanged export.
        case invalidImport = "invalid_import"
        /// Another process, or another queue of this process, owns the directory.
        case alreadyOwned = "already_owned"
        /// The directory cannot be created or used.
        case directoryUnusable = "directory_unusable"
        /// The database is damaged, does not belong to a queue, or was written by a newer netwatch. It is left
        /// unchanged. Or the file of the database is missing, although its log or the directory `spool` exists. A queue
        /// that finds damage while it runs writes nothing more; open it again, as after ``storeFailed``.
        case storeUnusable = "store_unusable"
        /// Another program uses the database, or the database cannot be read at the moment.
        case storeUnavailable = "store_unavailable"
        /// A write to the database failed, in this call or in an earlier one. The queue writes nothing more until it is
        /// opened again. Accepted requests are kept.
        case storeFailed = "store_failed"
        /// The directory, its lock, the database, its log or the spool was removed, moved or replaced while the queue
        /// ran. The queue writes nothing more until it is opened again.
        case storeReplaced = "store_replaced"
        /// The queue was stopped.
        case stopped
        /// A file that contains a body or an export cannot be read, or is not a regular file.
        case bodyFileUnusable = "body_file_unusable"
        /// The disk is full, or the user's quota is used up. The body was not stored. Accepted requests are kept.
        case insufficientSpace = "insufficient_space"
        /// A file in the spool, the directory of large bodies, cannot be written or read. The body was not stored.
        /// Accepted requests are kept.
        case spoolFailed = "spool_failed"
        /// The maximum number of uploads, 64, is reached.
        case tooManyStagedBodies = "too_many_staged_bodies"
        /// No upload has this id: the id was never used, a request used the upload, or the upload was removed.
        case unknownStagedBody = "unknown_staged_body"
        /// A piece of an upload does not begin where the previous piece ended, or the stated size of the upload is
        /// wrong. ``QueueError/offset`` is the number of bytes that were uploaded.
        case wrongOffset = "wrong_offset"
        /// The file of encryption keys cannot be read, is accessible to other users, or contains no valid key. Nothing
        /// was opened.
        case encryptionKeyUnusable = "encryption_key_unusable"
        /// The queue is encrypted and was opened without its key, so it accepts no requests. Stored requests are kept.
        case encryptionKeyMissing = "encryption_key_missing"
        /// The body is a stream that was already read. A conversion between `URLRequest` and ``QueueRequest`` also
        /// throws this for a body that the other type cannot contain.
        case bodyUnavailable = "body_unavailable"
        /// The queue gave the request up: no attempt can succeed, or its time to live has passed.
        case dead
        /// The request was cancelled in the queue, or replaced by a newer one.
        case cancelled
        /// The request is stored, but this process no longer waits for its response.
        case leftToQueue = "left_to_queue"
    }

    /// The kind of error, for programs.
    public let code: Code
    /// A human-readable message: one sentence without a full stop.
    public let message: String
    /// The path of the file or directory that caused the error, if one did.
    public let path: String?
    /// The id of the process that owns the directory. Only with ``Code/alreadyOwned``, and `nil` if that process
    /// recorded no id.
    public let ownerPID: Int32?
    /// The number of bytes that were uploaded. Only with ``Code/wrongOffset``.
    public let offset: Int64?
    /// The id of the stored request, with ``Code/dead``, ``Code/cancelled`` and ``Code/leftToQueue``.
    public let requestID: String?

    package init(
        _ code: Code,
        _ message: String,
        path: String? = nil,
        ownerPID: Int32? = nil,
        offset: Int64? = nil,
        requestID: String? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.ownerPID = ownerPID
        self.offset = offset
        self.requestID = requestID
    }
}

extension QueueError {
    /// Whether the store writes nothing after this error. It is unknown whether the write that failed is on disk.
    var endsStore: Bool { [.storeFailed, .storeUnusable, .storeReplaced].contains(code) }

    /// Whether the request would fit after others have finished.
    var isFull: Bool { [.queueFull, .quotaExceeded].contains(code) }
}

extension QueueError {
    /// The error of a request that the queue gave up.
    public static func dead(_ id: String, _ reason: String) -> QueueError {
        QueueError(.dead, reason, requestID: id)
    }

    /// The error of a request that was cancelled in the queue.
    public static func cancelled(_ id: String) -> QueueError {
        cancelled(id, "the request was cancelled in the queue")
    }

    static func cancelled(_ id: String, _ reason: String) -> QueueError {
        QueueError(.cancelled, reason, requestID: id)
    }

    /// The error of a stored request whose session was released or whose queue was stopped.
    public static func leftToQueue(_ id: String) -> QueueError {
        let message = "the queue sends the request later, but this process no longer waits for its response"
        return QueueError(.leftToQueue, message, requestID: id)
    }
}

extension QueueError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
