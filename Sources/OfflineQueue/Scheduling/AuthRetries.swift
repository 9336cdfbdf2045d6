internal import NetwatchEventLoop

/// Decides when requests that are held for `auth` are tried again without a change of their credential: the server may
/// have rejected them for some seconds only, and a session's adapter may have read a new token.
///
/// Each scope (``CredentialScope``) sends one request after ``Backoff/base``, and further ones at intervals that double up
/// to ``Backoff/cap``. The first success of any request of the scope releases all others.
///
/// A server may accept a credential for some requests and reject it for others. If a released request is rejected again,
/// other successes would release it again and again. From then on, only the success of the request that was tried releases
/// the others at once, and other successes do so at the time of the next try. The rejection of a request that was not held
/// before may be the beginning of another failure of the server, and changes none of this.
struct AuthRetries: Sendable {
    /// The last release of held requests of a scope, until a request is rejected.
    private struct Release: Sendable {
        let at: Moment
        let isWhole: Bool
    }

    /// Some of the held requests of a scope. If one of them is rejected after the release of all, the server rejects it for
    /// good.
    private struct HeldSample: Sendable {
        /// Few suffice, because all held requests are released together and are tried soon after.
        static let maximumCount = 8

        /// The requests that were not released with all others since their rejection.
        private var held: Set<Int64> = []
        /// When each of the other requests was released with all others.
        private var released: [Int64: Moment] = [:]

        /// Records the rejection of a request.
        ///
        /// - Returns: Whether it was released with all others before the attempt began.
        mutating func rejected(_ request: Int64, began: Moment) -> Bool {
            let release = released.removeValue(forKey: request)
            if held.count + released.count < Self.maximumCount { held.insert(request) }
            return release.map { $0 <= began } ?? false
        }

        mutating func delivered(_ request: Int64) {
            held.remove(request)
            released[request] = nil
        }

        /// Records the release of all requests. A request that has not been tried for a long time since an earlier one is
        /// forgotten: it may have been removed from the queue.
        mutating func allReleased(now: Moment, forgettingAfter limit: Duration) {
            released = released.filter { now - $0.value < limit }
            for request in held { released[request] = now }
            held = []
        }
    }

    private struct Scope: Sendable {
        /// When a request was rejected first. The success of an attempt that began earlier proves nothing.
        let since: Moment
        /// When the next request is tried.
        var next: Moment
        /// When a request was rejected last, and when the store was last asked for a request to try.
        var (rejected, asked): (Moment, Moment)
        /// The number of releases after which a released request was rejected again.
        var failures = 0
        var release: Release?
        var sample = HeldSample()
        /// Whether the server accepts the credential for some requests and rejects it for others.
        var isPartial = false
        /// Whether another request has succeeded since the last release.
        var hasSucceeded = false
        /// The place of the request that was tried last.
        var place: HeldPlace?

        init(now: Moment, next: Moment) {
            (since, rejected, asked) = (now, now, now)
            self.next = next
        }
    }

    /// The maximum number of scopes with their own times. Requests may name any number of hosts and credentials. The
    /// requests of further scopes are tried together, at intervals of ``Backoff/base``.
    static let maximumScopes = 10_000

    private let intervals: Backoff
    private var scopes: [CredentialScope: Scope] = [:]
    /// When requests of other scopes are tried next; `nil` if there are none.
    private(set) var nextOfOthers: Moment?
    /// Whether a request of another scope was rejected since they were last tried.
    private var hasNewOthers = false
    /// The number of the lane whose request was tried last in ``nextOfOthers``.
    private var lastLane: Int64 = 0

    init(intervals: Backoff) {
        self.intervals = intervals
    }

    var isEmpty: Bool { scopes.isEmpty && nextOfOthers == nil }

    /// Returns when the next request of a scope is tried; `nil` if none is held, or if the scope has no time of its own.
    func next(_ scope: CredentialScope) -> Moment? { scopes[scope]?.next }

    /// Returns a delay with a random part of up to 10 %, so that clients do not return all at once.
    private func delay(after failures: Int, _ random: inout SplitMix64) -> Duration {
        let delay = intervals.base.doubled(times: failures, upTo: intervals.cap)
        return random.uniform(delay...delay + delay / 10)
    }
}

// MARK: - Attempts

extension AuthRetries {
    /// Records that a request was held for `auth`.
    ///
    /// - Parameters:
    ///   - request: The request's number.
    ///   - began: When its attempt began.
    /// - Returns: The requests to release now.
    mutating func rejected(
        _ scope: CredentialScope,
        _ request: Int64,
        began: Moment,
        now: Moment,
        _ random: inout SplitMix64
    ) -> HeldRelease? {
        guard var state = scopes[scope] ?? add(scope, now: now, &random) else { return nil }
        defer { scopes[scope] = state }
        state.rejected = now
        let isAgain = state.sample.rejected(request, began: began)
        if let release = state.release, began < release.at, !isAgain {
            guard release.isWhole else { return nil }
            // The request was in flight when all others were released, so it is released now.
            state.sample.allReleased(now: now, forgettingAfter: intervals.base)
            return .all(scope)
        }
        // Of each release, only the first failure counts.
        let counts = state.release.map { isAgain || !$0.isWhole } ?? (isAgain && !state.isPartial)
        guard counts || state.release != nil else { return nil }
        if counts { state.failures += 1 }
        if isAgain { state.isPartial = true }
        state.release = nil
        state.next = now + delay(after: state.failures, &random)
        return nil
    }

    /// Adds a scope.
    ///
    /// - Returns: `nil` if it has no times of its own.
    private mutating func add(
        _ scope: CredentialScope,
        now: Moment,
        _ random: inout SplitMix64
    ) -> Scope? {
        let next = now + delay(after: 0, &random)
        guard scopes.count < Self.maximumScopes else {
            (nextOfOthers, hasNewOthers) = (nextOfOthers ?? next, true)
            return nil
        }
        return Scope(now: now, next: next)
    }

    /// Records that a request was delivered.
    ///
    /// - Parameters:
    ///   - request: The request's number.
    ///   - began: When its attempt began.
    /// - Returns: The requests to release now.
    mutating func accepted(
        _ scope: CredentialScope,
        _ request: Int64,
        began: Moment,
        now: Moment,
        _ random: inout SplitMix64
    ) -> HeldRelease? {
        guard var state = scopes[scope], began >= state.since else { return nil }
        defer { scopes[scope] = state }
        state.sample.delivered(request)
        guard state.release?.isWhole != true else { return nil }
        guard !state.isPartial || state.place?.sequence == request else {
            state.hasSucceeded = true
            return nil
        }
        state.release = Release(at: now, isWhole: true)
        state.sample.allReleased(now: now, forgettingAfter: intervals.base)
        state.hasSucceeded = false
        state.next = now + delay(after: state.failures, &random)
        return .all(scope)
    }
}

// MARK: - Tries

extension AuthRetries {
    /// Handles the time of ``next(_:)``.
    ///
    /// - Returns: The requests to release; `nil` if the scope is unknown.
    mutating func nextCame(_ scope: CredentialScope, now: Moment, _ random: inout SplitMix64) -> HeldRelease?
    {
        guard var state = scopes[scope] else { return nil }
        let isWhole = state.hasSucceeded
        // The request that was tried last may still wait, so an attempt since that try counts, too.
        state.release = Release(at: state.release?.at ?? now, isWhole: isWhole)
        if isWhole { state.sample.allReleased(now: now, forgettingAfter: intervals.base) }
        state.hasSucceeded = false
        (state.next, state.asked) = (now + delay(after: state.failures, &random), now)
        scopes[scope] = state
        return isWhole ? .all(scope) : .next(scope, after: state.place)
    }

    /// Handles the time of ``nextOfOthers``.
    mutating func nextOfOthersCame(now: Moment, _ random: inout SplitMix64) -> HeldRelease {
        (nextOfOthers, hasNewOthers) = (now + delay(after: 0, &random), false)
        return .lanes(after: lastLane)
    }

    /// Records what a release found.
    mutating func released(_ release: HeldRelease, _ released: ReleasedRequests) {
        switch (release, released) {
        case (.next(let scope, _), .none):
            // A request may have been held after the store was asked.
            if let state = scopes[scope], state.rejected < state.asked { scopes[scope] = nil }
        case (.next(let scope, _), .some(let last)): scopes[scope]?.place = last
        // After the last lane, the next try begins with the first one.
        case (.lanes(let last), .none) where last > 0: lastLane = 0
        case (.lanes, .none): if !hasNewOthers { nextOfOthers = nil }
        case (.lanes, .some(let last)): lastLane = last.lane
        case (.all, _), (_, .waiting): break
        }
    }

    /// Starts the times of some scopes again, because their requests were released or their credential has changed.
    ///
    /// - Returns: These scopes.
    mutating func restart(
        now: Moment,
        _ random: inout SplitMix64,
        where isChanged: (CredentialScope) -> Bool
    ) -> [CredentialScope] {
        // The order must not depend on hash seeds, so that a run can be replayed.
        let changed = scopes.keys.filter(isChanged).sorted()
        for scope in changed { scopes[scope] = Scope(now: now, next: now + delay(after: 0, &random)) }
        return changed
    }
}
