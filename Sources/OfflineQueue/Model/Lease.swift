/// The exclusive right to send a request until its outcome is stored.
///
/// The write of the outcome names the lease's token. If the sender has lost its lease, the token no longer matches and
/// the write changes nothing.
package struct Lease: Hashable, Sendable {
    package let token: String
    /// The epoch of the store's owner that claimed the request. Each time the store is opened, the epoch increases by
    /// one.
    package let ownerEpoch: Int64

    package init(token: String, ownerEpoch: Int64) {
        self.token = token
        self.ownerEpoch = ownerEpoch
    }
}
