internal import NetwatchEventLoop

/// The calls of one credential's provider that attempts wait for.
///
/// An attempt occupies a slot of its origin, so it waits only for ``maximumWait``. Then its request is postponed, and
/// the call continues. The next attempt of the request takes the result. Meanwhile, other requests with the credential
/// are postponed without a call. A provider that hangs therefore has few calls in progress, and its requests do not
/// take slots from requests with other credentials.
struct ProviderCalls<Value: Sendable>: Sendable {
    /// A call for one request.
    private struct Call {
        let task: Task<Value, any Error>
        let began: ContinuousClock.Instant
        var ended: ContinuousClock.Instant?

        /// Whether the call ended so long ago that its result may no longer be valid.
        func isOld(at now: ContinuousClock.Instant) -> Bool {
            ended.map { now - $0 >= ProviderCalls.keptTime } ?? false
        }
    }

    /// The delay after the first failure of a provider, and the maximum; each further failure doubles the delay.
    private static var firstDelay: Duration { .seconds(1) }
    private static var longestDelay: Duration { .seconds(30) }
    /// The time for which the result of a call is kept for its request.
    private static var keptTime: Duration { .seconds(60) }

    /// The maximum time for which an attempt waits.
    let maximumWait: Duration
    private var calls: [String: Call] = [:]
    private var failures = 0
    private var lastFailure: (reason: WithheldReason, retryAt: ContinuousClock.Instant)?

    init(maximumWait: Duration) {
        self.maximumWait = maximumWait
    }

    /// Returns the call that was begun for a request, unless its result is too old.
    func task(of request: String, at now: ContinuousClock.Instant) -> Task<Value, any Error>? {
        guard let call = calls[request], !call.isOld(at: now) else { return nil }
        return call.task
    }

    /// Returns whether a call has lasted longer than ``maximumWait``.
    func areSlow(at now: ContinuousClock.Instant) -> Bool {
        calls.values.contains { $0.ended == nil && now - $0.began >= maximumWait }
    }

    /// Returns why the last call failed, with the time until the provider may be called again; `nil` if it may be
    /// called now.
    func refusal(at now: ContinuousClock.Instant) -> WithheldReason? {
        guard let (reason, retryAt) = lastFailure, now < retryAt else { return nil }
        return reason.delayed(by: retryAt - now)
    }

    mutating func begin(_ task: Task<Value, any Error>, for request: String, at now: ContinuousClock.Instant)
    {
        calls = calls.filter { !$0.value.isOld(at: now) }
        calls[request] = Call(task: task, began: now)
    }

    /// Records the end of a call. Its result is kept until ``remove(_:)``.
    ///
    /// - Parameter reason: Why the provider failed; `nil` if it did not.
    mutating func end(_ request: String, _ reason: WithheldReason?, at now: ContinuousClock.Instant) {
        calls[request]?.ended = now
        guard let reason else {
            (failures, lastFailure) = (0, nil)
            return
        }
        // Other faults, for example that the credential does not list the origin, say nothing about the provider.
        guard reason.remedy == .retry else { return }
        let delay = Self.firstDelay.doubled(times: failures, upTo: Self.longestDelay)
        lastFailure = (reason, now + delay)
        failures += 1
    }

    mutating func remove(_ request: String) { calls[request] = nil }

    /// Whether there are neither calls nor failures to remember.
    var isIdle: Bool { calls.isEmpty && failures == 0 }
}
