/// The verdict on one address, and the properties of its route that tell the monitor when the verdict may change.
struct AddressVerdict: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    /// The time until the route expires; `nil` if it does not expire.
    var lifetime: Duration?
    /// Whether the lifetime of the route may change without a notification.
    var isRenewable = false
    /// A hash of the IPv6 route's table entry, which is the same for all addresses with this route; 0 if there is no
    /// entry.
    var route = 0
    /// The index of the interface of the route, even if it has no carrier; 0 if there is no route.
    var interface: UInt32 = 0
    /// Whether a change of another interface may change the verdict, for example because the route has several next
    /// hops.
    var dependsOnOtherInterfaces = false
    /// Whether a shortage, for example of descriptors, prevented the lookup, so that it must be repeated.
    var isShortage = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
    }

    static let noNetlink = AddressVerdict(.unknown(.noNetlink))
}
