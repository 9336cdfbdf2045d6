/// The right to send a request until its outcome is stored. Every later write names the lease's token, so that a sender
/// that lost its lease changes nothing.
package struct Lease: Hashable, Sendable {
    package let token: String
    /// The run of the queue that claimed the request; it rises each time the store is opened.
    package let ownerEpoch: Int64

    package init(token: String, ownerEpoch: Int64) {
        self.token = token
        self.ownerEpoch = ownerEpoch
    }
}
