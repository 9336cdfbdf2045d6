internal import NetwatchEventLoop

/// Counts the addresses whose verdict only the audit has corrected. A pure value.
///
/// A change that happens immediately before an audit is found by the audit before its notification arrives. So a
/// correction counts only if no notification that concerns the address arrives within ``grace``.
///
/// The corrections of a confirmation do not count, because the kernel announces some changes before it makes them. So
/// nothing is counted while notifications arrive more often than the audit interval: there is then no audit.
struct AuditCorrections: Sendable {
    /// The time for which a notification is awaited: 2 s. The kernel sends that of a changed carrier up to 1 s late
    /// (`linkwatch`).
    static let grace: Duration = .seconds(2)

    private var pending: [(slot: AddressBook.Slot, due: BootInstant)] = []
    private var counted = 0

    /// Records that an audit has changed the verdict on an address.
    mutating func note(_ slot: AddressBook.Slot, now: BootInstant) {
        pending.append((slot, now + Self.grace))
    }

    /// Retracts the corrections that have not been counted yet and that a notification explains.
    mutating func retract(now: BootInstant, where isExplained: (AddressBook.Slot) -> Bool) {
        guard !pending.isEmpty else { return }
        count(at: now)
        pending.removeAll { isExplained($0.slot) }
    }

    /// The number of corrections, including those that have not been counted yet.
    var total: Int { counted + pending.count }

    /// Counts the corrections whose time is over. Returns the total number of corrections.
    @discardableResult
    mutating func count(at now: BootInstant) -> Int {
        counted += pending.count { $0.due <= now }
        pending.removeAll { $0.due <= now }
        return counted
    }
}
