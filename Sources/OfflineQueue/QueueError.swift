/// Why the queue refused or could not do something.
public struct QueueError: Error, Hashable, Sendable {
    /// What went wrong, for programs.
    public enum Code: String, Hashable, Sendable {
        /// The URL is no absolute `http` or `https` URL with a host, or it holds a user name or password.
        case invalidURL = "invalid_url"
        /// The method is not a token.
        case invalidMethod = "invalid_method"
        /// A header's name is not a token, or its value holds a control character other than the tab.
        case invalidHeader = "invalid_header"
        /// A header carries a secret, and secrets are not stored.
        case secretHeader = "secret_header"
        /// The body is longer than ``QueueRequest/maximumBodyBytes``, or the request than ``QueueLimits`` ever allow.
        case bodyTooLarge = "body_too_large"
        /// An option cannot be used as it is.
        case invalidOption = "invalid_option"
        /// A setting of ``OfflineQueue/Configuration`` cannot be used as it is. Nothing was opened.
        case invalidConfiguration = "invalid_configuration"
        /// The queue has no room for the request: its own limits, or the disk's. Nothing was changed.
        case queueFull = "queue_full"
        /// A request depends on one that the queue does not know or that was given up.
        case unknownDependency = "unknown_dependency"
        /// Requests depend on each other in a circle.
        case cyclicDependency = "cyclic_dependency"
        /// No request has this id.
        case unknownRequest = "unknown_request"
        /// A request with this id and other content is in the queue; the message says what differs. Nothing was changed.
        case idConflict = "id_conflict"
        /// No lane matches. Nothing was changed.
        case unknownLane = "unknown_lane"
        /// What was to be imported is not a whole export.
        case invalidImport = "invalid_import"
        /// Another process, or another queue of this one, owns the directory.
        case alreadyOwned = "already_owned"
        /// The directory cannot be made or used.
        case directoryUnusable = "directory_unusable"
        /// The database is not a queue's, is damaged, or was written by a newer netwatch. It is left as it is. When
        /// damage is met by a queue that runs, nothing is accepted any more, as after ``storeFailed``.
        case storeUnusable = "store_unusable"
        /// The database is in use by another program, or cannot be read for now.
        case storeUnavailable = "store_unavailable"
        /// Writing failed, now or earlier. Nothing is accepted any more; what was accepted is kept and is
        /// found when the queue is opened anew.
        case storeFailed = "store_failed"
        /// The directory, its lock, the database, its log or the spool is not what its path names any more: it was
        /// removed, moved or replaced while the queue ran. Nothing is accepted any more, as after ``storeFailed``.
        case storeReplaced = "store_replaced"
        /// The queue was stopped.
        case stopped
        /// A file that was to be a body cannot be read, or is no regular file.
        case bodyFileUnusable = "body_file_unusable"
        /// The disk is full, or the user's share of it. What was accepted is kept; this body was not.
        case insufficientSpace = "insufficient_space"
        /// The file of a body cannot be written or read. What was accepted is kept; this body was not.
        case spoolFailed = "spool_failed"
        /// As many bodies as may be are being uploaded.
        case tooManyStagedBodies = "too_many_staged_bodies"
        /// No body of that name is being uploaded: a request used it, or it was removed.
        case unknownStagedBody = "unknown_staged_body"
        /// A piece of a body does not begin where the one before ended; ``QueueError/offset`` tells where.
        case wrongOffset = "wrong_offset"
    }

    /// What went wrong, for programs.
    public let code: Code
    /// What went wrong, for people: one sentence without a full stop.
    public let message: String
    /// The file or directory concerned, if one is.
    public let path: String?
    /// The process that owns the directory, with ``Code/alreadyOwned`` and when it left its number.
    public let ownerPID: Int32?
    /// How many bytes of the body have come, with ``Code/wrongOffset``.
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
    /// Whether nothing is written after it. Then nobody knows whether what was being written is on the disk.
    var endsStore: Bool { [.storeFailed, .storeUnusable, .storeReplaced].contains(code) }
}

extension QueueError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}

/// A value in a message: between backticks, its control characters escaped, cut after 80.
func quoted(_ value: String) -> String {
    let escaped = value.unicodeScalars.prefix(80).map {
        $0.properties.generalCategory == .control
            ? $0.escaped(asASCII: true) : String($0)
    }
    return "`\(escaped.joined())\(value.unicodeScalars.count > 80 ? "…" : "")`"
}
