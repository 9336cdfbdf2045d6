/// An error of the queue.
public struct QueueError: Error, Hashable, Sendable {
    /// The kind of error, for programs.
    public enum Code: String, Hashable, Sendable {
        /// The URL is not an absolute `http` or `https` URL with a host, or it contains a user name or password.
        case invalidURL = "invalid_url"
        /// The method is not a token.
        case invalidMethod = "invalid_method"
        /// A header's name is not a token, or its value contains a control character other than tab.
        case invalidHeader = "invalid_header"
        /// A header carries a secret, and secrets are not stored.
        case secretHeader = "secret_header"
        /// The body is longer than ``QueueRequest/maximumBodyBytes``, or the request is larger than ``QueueLimits`` can
        /// ever allow.
        case bodyTooLarge = "body_too_large"
        /// An option is invalid.
        case invalidOption = "invalid_option"
        /// A setting of ``OfflineQueue/Configuration`` is invalid. Nothing was opened.
        case invalidConfiguration = "invalid_configuration"
        /// The queue has no room for the request, because of its limits or the disk. Nothing was changed.
        case queueFull = "queue_full"
        /// A request depends on one that is unknown or was given up.
        case unknownDependency = "unknown_dependency"
        /// The dependencies of requests form a cycle.
        case cyclicDependency = "cyclic_dependency"
        /// No request has this id.
        case unknownRequest = "unknown_request"
        /// A request with this id and other content is in the queue; the message says what differs. Nothing was
        /// changed.
        case idConflict = "id_conflict"
        /// No lane matches. Nothing was changed.
        case unknownLane = "unknown_lane"
        /// The input of an import is not a complete export.
        case invalidImport = "invalid_import"
        /// Another process, or another queue of this process, owns the directory.
        case alreadyOwned = "already_owned"
        /// The directory cannot be created or used.
        case directoryUnusable = "directory_unusable"
        /// The database is damaged, does not belong to a queue, or was written by a newer netwatch. It is left
        /// unchanged. If a running queue finds damage, it accepts nothing more, as after ``storeFailed``.
        case storeUnusable = "store_unusable"
        /// The database is in use by another program, or cannot be read for now.
        case storeUnavailable = "store_unavailable"
        /// A write failed, now or earlier. The queue accepts nothing more. Accepted requests are kept and are available
        /// when the queue is opened again.
        case storeFailed = "store_failed"
        /// The directory, its lock, the database, its log or the spool was removed, moved or replaced while the queue
        /// ran. The queue accepts nothing more, as after ``storeFailed``.
        case storeReplaced = "store_replaced"
        /// The queue was stopped.
        case stopped
        /// A body's file cannot be read, or is not a regular file.
        case bodyFileUnusable = "body_file_unusable"
        /// The disk is full, or the user's quota is used up. Accepted requests are kept; this body was not stored.
        case insufficientSpace = "insufficient_space"
        /// A body's file in the spool cannot be written or read. Accepted requests are kept; this body was not stored.
        case spoolFailed = "spool_failed"
        /// The maximum number of uploads is reached.
        case tooManyStagedBodies = "too_many_staged_bodies"
        /// No upload has this name: a request used it, or it was removed.
        case unknownStagedBody = "unknown_staged_body"
        /// A piece of an upload does not begin where the previous one ended; ``QueueError/offset`` is the expected
        /// offset.
        case wrongOffset = "wrong_offset"
    }

    /// The kind of error, for programs.
    public let code: Code
    /// A human-readable message: one sentence without a full stop.
    public let message: String
    /// The file or directory concerned, if any.
    public let path: String?
    /// The process that owns the directory, with ``Code/alreadyOwned``, if that process recorded its id.
    public let ownerPID: Int32?
    /// The number of bytes of the upload that were received, with ``Code/wrongOffset``.
    public let offset: Int64?

    package init(
        _ code: Code,
        _ message: String,
        path: String? = nil,
        ownerPID: Int32? = nil,
        offset: Int64? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.ownerPID = ownerPID
        self.offset = offset
    }
}

extension QueueError {
    /// Whether nothing is written after this error. It is then unknown whether the last write is on disk.
    var endsStore: Bool { [.storeFailed, .storeUnusable, .storeReplaced].contains(code) }
}

extension QueueError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
