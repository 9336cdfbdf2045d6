/// What a hook reports of one host: it is down, or up again.
struct HostAlert: Hashable, Sendable {
    let event: Hook.Event
    let host: String
    /// What is checked, for people.
    let check: String
    let cause: OutageCause
    /// Why the host is down; `nil` if that is not known.
    let reason: String?
    /// Identifies the outage among those of the host; see ``HostTracker/Start/id``.
    let outage: Int64
    /// When the outage began, in milliseconds since 1970.
    let downSince: Int64
    /// When the host was up again; `nil` if it is down.
    let upSince: Int64?
}
