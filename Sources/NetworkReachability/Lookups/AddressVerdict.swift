/// The verdict on one address, and the properties of its route that tell the monitor when the verdict may change.
struct AddressVerdict: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    /// The time until the route expires; `nil` if it does not expire.
    var lifetime: Duration?
    /// The index of the interface of the route, even if it has no carrier; 0 if there is no route.
    var interface: UInt32 = 0
    /// Whether a change of another interface may change the verdict, for example because the route has several next
    /// hops.
    var dependsOnOtherInterfaces = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
    }

    static let noNetlink = AddressVerdict(.unknown(.noNetlink))
}
