/// The verdict on one address, and what could change it.
struct AddressVerdict: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    /// How long the verdict is valid if no event arrives; `nil` if without limit.
    var lifetime: Duration?
    /// The interface of the route, with or without carrier; 0 if there is none.
    var interface: UInt32 = 0
    /// Whether the route has several next hops, so that other interfaces could take over.
    var isMultipath = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
    }

    static let noNetlink = AddressVerdict(.unknown(.noNetlink))
}
