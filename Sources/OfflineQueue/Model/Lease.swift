/// The exclusive right to send a request until its outcome is stored.
///
/// The write of the outcome names the lease's token. If the sender has lost its lease, the token no longer matches and
/// the write changes nothing.
package struct Lease: Hashable, Sendable {
    package let token: String
    /// The number of the opening of the store in which the request was claimed. It rises with each opening.
    package let ownerEpoch: Int64

    package init(token: String, ownerEpoch: Int64) {
        self.token = token
        self.ownerEpoch = ownerEpoch
    }
}
