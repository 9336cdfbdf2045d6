internal import NetwatchEventLoop

/// The addresses whose path the kernel may change without a notification, and the time of their next lookup. A pure
/// value.
///
/// IPv6 routes with a lifetime usually come from router advertisements. The kernel sends no notification when an
/// advertisement changes the lifetime, and none when the lifetime ends: from then on it ignores the route, but keeps
/// it until a collection, which does send a notification. An advertisement before the collection makes the route valid
/// again, also without a notification. A program that adds the route again without an expiry gets `EEXIST`, but the
/// kernel removes the expiry, without a notification. So these addresses are looked up when the lifetime ends that
/// their last lookup found, and at an interval:
/// - An address whose route may change in this way.
/// - An address that has lost such a route, until ``retention`` after the next notification that concerns it, usually
///   that of the collection.
/// - An IPv6 address that is new or whose path has changed, for ``retention``, because an expired route may cover it.
///
/// Thousands of addresses may share a route. Of the addresses that have the same route and have lost the same route (a
/// group), only ``sampleSize`` are looked up per interval, in turn. If one of them has changed, all others follow. An
/// expired route that covers only some addresses of a large group is therefore noticed later: in a group of 640
/// addresses, the turn of an address comes every 10 s. Beyond 4160 addresses it may not come within ``retention``, and
/// the audit finds the change.
struct RouteLifetimes {
    typealias Slot = AddressBook.Slot

    /// The interval of the lookups: 1 s. A change is thus reported within 2 s, also if the thread is busy.
    static let interval: Duration = .seconds(1)
    /// The time for which an address without a renewable route is looked up: 65 s. It is more than twice the interval
    /// of the kernel's collection of expired routes (`net.ipv6.route.gc_interval`, 30 s by default).
    static let retention: Duration = .seconds(65)
    /// The maximum number of addresses of a group per interval: one system call looks up all of them.
    static let sampleSize = PathReader.batchSize
    /// The time added to the remaining lifetime that the kernel reports: 50 ms.
    ///
    /// The kernel rounds the lifetime down to 10 ms, and removes a route one tick (up to 10 ms) after its time.
    static let expiryMargin: Duration = .milliseconds(50)
    /// The difference by which a route must expire earlier than expected to count as changed: 100 ms. Rounding and the
    /// time that a lookup takes cause smaller differences.
    private static let tolerance: Duration = .milliseconds(100)

    fileprivate struct Group: Hashable {
        /// The ``AddressVerdict/route`` of the addresses, and the one that they have lost.
        var route: Int
        var lost: Int
    }

    fileprivate struct Entry {
        var group: Group
        var isRenewable = false
        var expiry: BootInstant?
        /// The time until which the address is looked up; `nil` for no end.
        var end: BootInstant?
        /// Whether a notification has arrived since the address lost a renewable route.
        var isNotified = false
    }

    private var entries: [Slot: Entry] = [:]
    /// The groups of which the last call of ``takeDue(at:)`` has returned only a part, unless the others have followed.
    private var sampled: Set<Group> = []
    private var turn = 0
    /// The time when ``takeDue(at:)`` must be called; `nil` if there are no addresses.
    private(set) var due: BootInstant?

    func contains(_ slot: Slot) -> Bool { entries[slot] != nil }

    mutating func remove(_ slot: Slot) {
        entries[slot] = nil
    }

    /// Continues the lookups of a slot at another one with the same address.
    mutating func copy(_ slot: Slot, to other: Slot) {
        entries[other] = entries[slot]
    }

    /// Records that a notification concerns an address.
    mutating func noteEvent(_ slot: Slot) {
        guard !entries.isEmpty else { return }
        entries[slot]?.isNotified = true
    }

    /// Records the result of the lookup of an IPv6 address.
    ///
    /// - Parameter isChanged: Whether the verdict differs from that of the previous lookup, or is the first.
    /// - Returns: The other addresses that must be looked up because of it.
    mutating func note(_ slot: Slot, _ found: AddressVerdict, isChanged: Bool, now: BootInstant) -> [Slot] {
        let before = entries[slot]
        guard found.isRenewable || isChanged || before != nil else { return [] }
        var after = before ?? Entry(group: Group(route: found.route, lost: 0), end: now + Self.retention)
        if found.route != after.group.route {
            after.group = Group(route: found.route, lost: after.group.route)
        }
        // In the last 10 ms of a route, the kernel reports no lifetime.
        let known = before?.expiry.flatMap { $0 > now && !isChanged ? $0 : nil }
        after.expiry = found.lifetime.map { now + $0 + Self.expiryMargin } ?? known
        after.isRenewable = found.isRenewable
        after.noteEnd(before, isChanged: isChanged, now: now)
        entries[slot] = after
        schedule(min(now + Self.interval, after.expiry ?? now + Self.interval))
        guard let before, isChanged || after.differs(from: before, Self.tolerance) else { return [] }
        return takeOthers(in: before.group)
    }

    /// Returns the addresses of a group of which only a part has been looked up.
    private mutating func takeOthers(in group: Group) -> [Slot] {
        guard sampled.remove(group) != nil else { return [] }
        return entries.filter { $0.value.group == group }.map(\.key)
    }

    private mutating func schedule(_ moment: BootInstant) {
        due = earliest(due, moment)
    }

    /// Returns the addresses to look up now, and schedules the next call. Takes time in proportion to the number of
    /// entries.
    mutating func takeDue(at now: BootInstant) -> [Slot] {
        guard let due, due <= now else { return [] }
        var groups: [Group: [Slot]] = [:]
        var next: BootInstant?
        var slots: [Slot] = []
        for (slot, entry) in entries {
            if entry.hasEnded(at: now) {
                entries[slot] = nil
            } else if let expiry = entry.expiry, expiry <= now {
                slots.append(slot)
            } else {
                next = earliest(next, entry.expiry)
                groups[entry.group, default: []].append(slot)
            }
        }
        self.due = entries.isEmpty ? nil : earliest(next, now + Self.interval)
        return slots + samples(of: groups)
    }

    /// Returns all addresses of small groups, and another part of large groups at each call.
    private mutating func samples(of groups: [Group: [Slot]]) -> [Slot] {
        turn += 1
        sampled = []
        return groups.flatMap { group, slots in
            if slots.count <= Self.sampleSize { return slots }
            sampled.insert(group)
            return (0..<Self.sampleSize).map { slots[(turn * Self.sampleSize + $0) % slots.count] }
        }
    }
}

extension RouteLifetimes.Entry {
    func hasEnded(at now: BootInstant) -> Bool {
        end.map { $0 <= now } ?? false
    }

    /// Updates the end from the entry before the lookup and from what the lookup has found.
    mutating func noteEnd(_ before: Self?, isChanged: Bool, now: BootInstant) {
        if isRenewable {
            (end, isNotified) = (nil, false)
        } else if before?.isRenewable == true {
            // No end: in some cases the kernel never collects the expired route. After an announced loss, a
            // notification has arrived before the lookup.
            end = before?.isNotified == true ? now + RouteLifetimes.retention : nil
        } else if isChanged && end != nil || isNotified && end == nil {
            end = now + RouteLifetimes.retention
        }
    }

    /// Returns whether a lookup has shown that other addresses of the group may have changed, too.
    func differs(from before: Self, _ tolerance: Duration) -> Bool {
        if group != before.group || isRenewable != before.isRenewable { return true }
        guard let expiry else { return false }
        return before.expiry.map { expiry + tolerance < $0 } ?? true
    }
}
