internal import FoundationEssentials
package import NetwatchEventLoop

/// Decides whether one host is up, from observations of it. A pure value.
///
/// - A lost path makes the host down immediately, because the kernel knows that nothing can be sent. So does a captive
///   portal.
/// - Failed probes make it down after ``WatchedHost/fall`` in a row. The outage begins with the first of them.
/// - Successful probes make it up again after ``WatchedHost/rise`` in a row, counted from the first of them. After any
///   state other than a remote outage, one is enough.
///
/// The tracker also accounts for the time that the host spent in each state. Time that a later observation may still
/// assign to another state is not accounted until that is decided.
package struct HostTracker: Sendable {
    /// A time in which the state did not change, in milliseconds since 1970.
    package struct Span: Hashable, Sendable {
        package let state: HostState
        package let start: Int64
        package let end: Int64
    }

    /// A change of the state.
    package struct Change: Hashable, Sendable {
        package let old: HostState
        package let new: HostState
        /// When the old state began; `nil` if it was the first.
        package let oldSince: Start?
        /// When the new state began. This may be before the observation that decided it.
        package let since: Start
        /// Why the host is down or unknown.
        package let reason: String?
        /// The time of the observation that decided it.
        package let time: Moment
    }

    /// The beginning of an outage.
    package struct Outage: Hashable, Sendable {
        package let cause: OutageCause
        package let since: Start

        package init(cause: OutageCause, since: Start) {
            self.cause = cause
            self.since = since
        }
    }

    /// Observations in a row that suggest another state.
    private struct PendingChange: Sendable {
        let state: HostState
        let first: Moment
        var count: Int
    }

    package private(set) var state: HostState
    /// When the state began; `nil` before the first observation.
    package private(set) var since: Start?
    /// Why the host is down or unknown, or why the last probe of a host that is up failed.
    package private(set) var reason: String?
    /// The latency of the last successful probe.
    package private(set) var latency: Duration?
    private let fall: Int
    private let rise: Int
    private var pendingChange: PendingChange?
    /// The end of the time that was accounted.
    private var accounted: Moment

    /// The outage that lasts; `nil` if the host is up or unknown.
    package var outage: Outage? {
        guard case .down(let cause) = state, let since else { return nil }
        return Outage(cause: cause, since: since)
    }

    /// Whether the host is up, but its last probe failed.
    package var isDegraded: Bool { state == .up && pendingChange != nil }

    /// - Parameters:
    ///   - outage: The outage that the host was in when it was last watched. Default: `nil`, none.
    ///   - now: The current time.
    package init(
        fall: Int,
        rise: Int,
        continuing outage: Outage? = nil,
        now: Moment
    ) {
        self.fall = fall
        self.rise = rise
        state = outage.map { .down($0.cause) } ?? .unknown
        since = outage?.since
        accounted = now
    }

    /// Records an observation. Returns the change of the state, if any, and the time that can now be accounted.
    package mutating func take(_ report: HostReport, at now: Moment) -> (change: Change?, spans: [Span]) {
        switch report {
        case .unknown(let reason): return enter(.unknown, at: now, now: now, reason)
        case .noPath(let reason), .captive(let reason):
            return enter(.down(.local), at: now, now: now, reason)
        case .path:
            guard state == .down(.local) else { return (nil, account(until: now)) }
            return enter(.unknown, at: now, now: now, nil)
        case .success(let latency):
            self.latency = latency
            return suggest(.up, threshold: state == .down(.remote) ? rise : 1, now: now, nil)
        case .failure(let reason):
            return suggest(.down(.remote), threshold: fall, now: now, reason)
        }
    }

    /// Returns the time up to now that is certain and was not returned before.
    package mutating func account(until now: Moment) -> [Span] {
        guard pendingChange == nil else { return [] }
        defer { accounted = now }
        return span(until: now, endingAt: now)
    }

    // MARK: Decisions

    private mutating func suggest(
        _ new: HostState,
        threshold: Int,
        now: Moment,
        _ reason: String?
    ) -> (change: Change?, spans: [Span]) {
        guard new != state else {
            pendingChange = nil
            self.reason = reason
            return (nil, account(until: now))
        }
        var pendingChange =
            self.pendingChange.flatMap { $0.state == new ? $0 : nil }
            ?? PendingChange(state: new, first: now, count: 0)
        pendingChange.count += 1
        guard pendingChange.count >= threshold else {
            // The time until this observation is certain. The time after it is not.
            let spans = pendingChange.count == 1 ? account(until: now) : []
            self.pendingChange = pendingChange
            self.reason = reason ?? self.reason
            return (nil, spans)
        }
        return enter(new, at: pendingChange.first, now: now, reason)
    }

    private mutating func enter(
        _ new: HostState,
        at begin: Moment,
        now: Moment,
        _ reason: String?
    ) -> (change: Change?, spans: [Span]) {
        pendingChange = nil
        self.reason = reason
        guard new != state || since == nil else { return (nil, account(until: now)) }
        let before = span(until: begin, endingAt: now)
        let start = wall(of: begin, now: now)
        let change = Change(
            old: state,
            new: new,
            oldSince: since,
            since: Start(id: start, recorded: start, boot: begin.boot),
            reason: reason,
            time: now
        )
        accounted = begin
        state = new
        since = change.since
        return (change, before + account(until: now))
    }

    // MARK: Time

    /// Returns the unaccounted time until `end`. Its length is measured by the running clock, so that a step of the
    /// wall clock neither adds nor removes time.
    private func span(until end: Moment, endingAt now: Moment) -> [Span] {
        let length = (end.running - accounted.running).milliseconds
        guard length > 0 else { return [] }
        let last = wall(of: end, now: now)
        return [Span(state: state, start: last - length, end: last)]
    }

    /// Returns the time of a moment on the wall clock as it is set now.
    private func wall(of moment: Moment, now: Moment) -> Int64 {
        now.wall - (now.boot - moment.boot).milliseconds
    }
}

/// Whether a host is up.
package enum HostState: Hashable, Sendable {
    /// Nothing is known: the host has not been probed over its path yet, or netlink is unavailable.
    case unknown
    /// The host responds as expected.
    case up
    /// The host cannot be used, for this reason.
    case down(OutageCause)
}

extension HostState {
    /// The cause of the outage; `nil` if the host is not down.
    package var cause: OutageCause? {
        if case .down(let cause) = self { cause } else { nil }
    }
}

/// Which side an outage of a host is on. There is no unknown side: while the state of the host is unknown, nothing tells
/// whether there is an outage, and this time counts neither for nor against the host.
package enum OutageCause: String, Hashable, Sendable, CaseIterable {
    /// This machine has no path to the host, or a captive portal blocks the path.
    case local
    /// There is a path to the host, but the host does not respond as expected.
    case remote
}

/// One observation of a host.
package enum HostReport: Hashable, Sendable {
    /// The kernel could not be asked for a path.
    case unknown(String)
    /// The kernel has no path to the host.
    case noPath(String)
    /// The kernel has a path to the host, which has not been probed yet.
    case path
    /// A probe succeeded. The latency is `nil` if the check sends nothing.
    case success(latency: Duration?)
    /// A captive portal responded instead of the host.
    case captive(String)
    /// A probe failed.
    case failure(String)
}

extension HostTracker {
    /// A point in time on three clocks.
    package struct Moment: Hashable, Sendable {
        /// Milliseconds since 1970 on the wall clock.
        package let wall: Int64
        /// The time on a clock that cannot be set and that stops while the machine is suspended.
        package let running: Duration
        /// The time on a clock that cannot be set and that continues while the machine is suspended.
        package let boot: BootInstant

        package init(wall: Int64, running: Duration, boot: BootInstant) {
            self.wall = wall
            self.running = running
            self.boot = boot
        }
    }

    /// When something began, such as an outage. The duration since then is measured by the boot clock, so a step of the
    /// wall clock does not change it.
    package struct Start: Hashable, Sendable {
        /// Milliseconds since 1970 on the wall clock as it was set at first. Identifies an outage of a host in the
        /// messages of hooks.
        package let id: Int64
        /// The same time on the wall clock as it was set when it was last recorded.
        package let recorded: Int64
        /// The same time on the boot clock; `nil` if it was before the last boot.
        package let boot: BootInstant?

        /// The difference, in milliseconds, below which ``wall(at:)`` returns the recorded time: 2 s. Without it, the time
        /// would change with each correction of the clock's rate. The value is larger than a leap second.
        private static let leastStep: Int64 = 2000

        package init(id: Int64, recorded: Int64, boot: BootInstant?) {
            self.id = id
            self.recorded = recorded
            self.boot = boot
        }

        package init(_ moment: Moment) {
            self.init(id: moment.wall, recorded: moment.wall, boot: moment.boot)
        }

        /// Returns the time on the wall clock as it is set now, in milliseconds since 1970. It is never after `now`.
        package func wall(at now: Moment) -> Int64 {
            guard let boot else { return min(recorded, now.wall) }
            let exact = now.wall - (now.boot - boot).milliseconds
            return min(abs(exact - recorded) < Self.leastStep ? recorded : exact, now.wall)
        }
    }
}

extension HostTracker.Moment {
    /// The current time.
    package static var now: HostTracker.Moment {
        HostTracker.Moment(
            wall: Int64(Date().timeIntervalSince1970 * 1000),
            running: SuspendingClock.now.sinceStart,
            boot: .now
        )
    }
}

extension SuspendingClock.Instant {
    /// A fixed reference, because an instant cannot be read as a number.
    private static let start = SuspendingClock.now

    fileprivate var sinceStart: Duration { self - Self.start }
}

extension Duration {
    /// The whole milliseconds of the duration.
    package var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}

extension Date {
    /// - Parameter milliseconds: Milliseconds since 1970.
    init(milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}
