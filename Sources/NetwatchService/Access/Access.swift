/// What a user may do with the control API. Each level includes the lower ones.
package enum Access: Int, Hashable, Sendable, Comparable, CaseIterable {
    /// Nothing, not even to connect.
    case none
    /// Reads the state of the service, and of the requests of other users only their ids, states and hosts.
    case read
    /// Submits requests, and edits its own.
    case submit
    /// Everything, for the requests of all users.
    case full

    /// What only this level and higher ones permit, as the end of a sentence.
    var permission: String {
        switch self {
        case .none: "connect to the service"
        case .read: "read the state of the queue and of the hosts"
        case .submit: "submit or edit requests"
        case .full: "control the whole queue or the service"
        }
    }

    package static func < (left: Access, right: Access) -> Bool { left.rawValue < right.rawValue }
}

/// The sender of a request to the control API.
package struct Caller: Hashable, Sendable {
    /// The user; `nil` if the request came over TCP, or if the kernel does not report the user (``UnmappedIDs``).
    package let user: UInt32?
    package let access: Access

    /// Returns whether the caller may read and edit everything of a stored request or an upload.
    ///
    /// - Parameter owner: The user who submitted it; `nil` if that is not known.
    package func owns(_ owner: UInt32?) -> Bool {
        access == .full || (owner != nil && owner == user)
    }
}
