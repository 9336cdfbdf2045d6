internal import NetwatchEventLoop

/// Decides when each lane may try requests, and how many. It is a value without a clock or I/O: it receives events with
/// their times, and returns actions for the caller to perform.
package struct Scheduler: Sendable {
    /// The limits and times of the scheduler.
    package struct Settings: Hashable, Sendable {
        /// The maximum number of requests that a parallel lane has in flight.
        package var inflightPerLane = 8
        /// The maximum number of requests in flight for all lanes of an origin together.
        package var inflightPerOrigin = 8
        /// The maximum number of requests in flight in the whole queue: the number of slots.
        package var inflight = 32
        /// The backoff of failed requests and of closed lanes.
        package var backoff = Backoff()
        /// The number of failures in a row that close a lane. 5 is also the default of Finagle's failure accrual.
        package var failuresToClose = 5
        /// How long a lane waits for the first state of its gate. This is slightly longer than the monitor takes to
        /// report the state of a name that does not resolve. Without the wait, the first attempt would fail while the
        /// machine is offline, and be repeated as soon as the state arrives.
        package var gateTimeout: Duration = .milliseconds(2500)
        /// The range of the random time for which a lane is closed after its server was not trusted.
        package var distrust: ClosedRange<Duration> = .seconds(300) ... .seconds(900)
        /// The first and the longest interval between two tries of requests that are held for `auth`. Each further try
        /// doubles the interval.
        package var authRetries = Backoff(base: .seconds(300), cap: .seconds(3600))

        /// The duration from which an attempt is slow. After a slow attempt, its origin gets no reserved slot until an
        /// attempt is faster.
        package var slowAttempt: Duration = .seconds(10)
        /// The duration from which an attempt without a response is a sign that its server is silent. Silent origins
        /// share a part of the slots.
        package var silentAttempt: Duration = .seconds(1)

        /// The grace period: how long attempts continue after the path to their host was lost. If the same path returns
        /// in this time, their connections survive, because TCP retransmits.
        package var lossGrace: Duration = .seconds(3)
        /// How long failures to connect are retried fast, without being counted, after a host has become reachable.
        /// Also, how long a lane's failures cannot cause another opening after a response to another lane has opened
        /// it.
        package var reconnectTime: Duration = .seconds(5)
        /// The delay before the first fast retry. It doubles with each further one, up to the maximum of ``backoff``.
        package var reconnectDelay: Duration = .milliseconds(50)
        /// The delay after a portal probe that failed within ``reconnectTime`` after an outage.
        package var portalRetry: Duration = .milliseconds(250)
        /// The maximum of the random delay of the first requests after an outage, and after the start.
        package var reconnectSpread: Duration = .zero
        /// The number of requests with which sending resumes after an outage, in all lanes together.
        package var rampStart = 4
        /// The maximum duration of the ramp after an outage. The ramp ends after this time even if few requests have
        /// succeeded, because a long upload would otherwise keep it.
        package var rampDuration: Duration = .seconds(30)
        /// The factor by which an origin's window shrinks at a sign of overload. 1 keeps its size.
        package var windowDecrease = 0.7
        /// The number of retries per first attempt within 10 s, for each origin.
        package var retryShare = 0.2
        /// The number of retries per second that are always permitted, for each origin.
        package var retryRate = 1.0
        /// How long a lane waits for its canary, the first request after an outage. This is longer than a connection
        /// attempt may take, so that a canary in flight for this time has reached the server.
        package var canaryTime: Duration = .seconds(20)
        /// Whether refusals are confirmed before requests are given up because of them.
        package var confirmsRefusals = true
        /// The number of attempts per second to hosts that do not answer, in all lanes together. Each may cause two DNS
        /// queries. With the 13 queries per second of the path monitor, this is less than 20.
        package var unansweredRate = 3.0
        /// The number of such attempts that may be made at once after a pause.
        package var unansweredBurst = 32
        /// The number of endpoints up to which attempts to hosts that do not answer need no turn. So few hosts cause few
        /// attempts, because of the backoff of each lane.
        package var turnsFromEndpoints = 64
        /// The maximum number of watched endpoints. One user may use a quarter of it (``SharedLimit``).
        package var maximumWatches = 4096
        /// How long a watch must have been unused before it yields to another endpoint. This is longer than a lane waits for
        /// the first state of its gate.
        package var watchIdleTime: Duration = .seconds(5)
        /// The maximum number of lanes in memory, including those that are being loaded. One user may use a quarter of it
        /// (``SharedLimit``). An eighth of each is left for attempts that are demanded.
        package var maximumLanes = 20_000
        /// The backoff while this machine is short of descriptors, memory, threads or ports.
        package var shortage = Backoff(base: .milliseconds(500), cap: .seconds(30))

        /// Whether paths are probed for captive portals before requests are sent over plain HTTP.
        package var checksPortals = false
        /// The delay between two probes of a path on which there is a captive portal, or whose probe failed.
        package var portalBackoff = Backoff(base: .seconds(2), cap: .seconds(60))

        /// The maximum rates of requests.
        package var rates: [RateLimit] = []
        /// The weights of hosts other than 1. A host of weight 3 gets three slots where others get one.
        package var hostWeights: [String: Int] = [:]
        /// The weights of lanes other than 1, by label. They apply among the lanes of an origin.
        package var laneWeights: [String: Int] = [:]

        /// The share of slots that is reserved for origins with nothing in flight, as a divisor: 4 reserves a quarter.
        /// At least one slot is reserved if there are two or more. 0 reserves none.
        package var reservedShare = 4

        package init() {}

        var reserved: Int { reservedShare > 0 && inflight > 1 ? max(1, inflight / reservedShare) : 0 }
    }

    /// The properties of a lane that its requests do not change.
    package struct LaneInfo: Hashable, Sendable {
        package let id: Int64
        package let key: LaneKey
        /// The time until which the server closed the lane with `Retry-After`; `nil` if it did not.
        package let notBefore: Moment?

        package init(id: Int64, key: LaneKey, notBefore: Moment? = nil) {
            self.id = id
            self.key = key
            self.notBefore = notBefore
        }

        package var origin: Origin { key.origin }
    }

    /// A lane and the time at which the first of its requests is due.
    package struct LaneRows: Hashable, Sendable {
        package let info: LaneInfo
        /// `nil` if no request is pending.
        package let due: Moment?
        /// Whether a user or program has released one of the requests.
        package var isRequested = false
        /// The time of the flush that has selected the lane; `nil` if none has. A lane that has been in memory since then
        /// has received ``Event/flush(_:)``.
        package var flushedAt: Moment?

        package init(
            _ info: LaneInfo,
            due: Moment?,
            isRequested: Bool = false,
            flushedAt: Moment? = nil
        ) {
            self.info = info
            self.due = due
            (self.isRequested, self.flushedAt) = (isRequested, flushedAt)
        }
    }

    /// An input of the scheduler.
    package enum Event: Hashable, Sendable {
        /// Lanes have requests.
        case lanes([LaneRows])
        /// Lanes had no requests left, but may have new ones.
        case emptied(lanes: [Int64])
        /// Lanes from ``Action/load(_:)`` were read. Those without a pending request are included; `missing` are lanes that
        /// the store does not have any more.
        case loaded([LaneRows], missing: [Int64])
        /// The state of an endpoint's gate changed.
        case gate(Endpoint, GateState)
        /// A claim from ``Action/claim(_:)`` was executed. `taken` is the number of claimed requests. `due` is when the
        /// next remaining request is due; `nil` if there is none.
        case claimed(lane: Int64, taken: Int, use: RetryUse = RetryUse(), due: Moment?)
        /// An outcome was stored. `due` is when the request is retried; `nil` if it is not. `isDistrusted` is whether
        /// it is held because its server is not trusted.
        case settled(lane: Int64, due: Moment?, isDistrusted: Bool)
        /// A request was held for `auth` after an attempt that began at the given time.
        case credentialRejected(CredentialScope, request: Int64, began: Moment)
        /// A request was delivered by an attempt that began at the given time. Needed only while
        /// ``Scheduler/hasRejectedCredentials``.
        case credentialAccepted(CredentialScope, request: Int64, began: Moment)
        /// Credentials have changed, and their requests were released.
        case credentialsChanged(Set<String>)
        /// An order to release held requests was executed.
        case released(HeldRelease, ReleasedRequests)
        /// An outcome was stored, and the claim from ``Scheduler/claimNext(lane:after:now:)`` was executed. `taken` and
        /// `due` have the same meanings as in ``claimed(lane:taken:use:due:)``.
        case nextClaimed(lane: Int64, taken: Int, use: RetryUse = RetryUse(), due: Moment?)
        /// The probe from ``Action/probePortal(_:probe:)`` runs, but an earlier one of the same path has failed.
        case portalProbeHasFailed(Endpoint, probe: Int)
        /// The probe from ``Action/probePortal(_:probe:)`` ended.
        case portalProbed(Endpoint, probe: Int, PortalFinding)
        /// The time of ``Scheduler/nextWake(now:)`` has come.
        case wake
        /// The settings changed. Requests in flight remain, even if they exceed the new numbers.
        indirect case settings(Settings)
        /// A user or program asked to try these lanes now. All that have requests must follow as ``lanes(_:)`` with
        /// ``LaneRows/flushedAt``, because some may not be in memory.
        case flush(LaneSelection)
        /// A probe of these origins succeeded.
        case probeSucceeded([Origin])
        /// The queue stops: no lane may claim requests from now on.
        case stop
    }

    /// An order to claim up to `limit` requests of a lane.
    package struct Claim: Hashable, Sendable {
        package let lane: Int64
        package let limit: Int
        /// The hold reasons whose requests are released before the claim. Unless this is `nil`, the claim also makes
        /// all pending requests of the lane due.
        package let releasing: Set<HoldReason>?
        /// The retries that the claim may take; `nil` for any number.
        package let retries: RetryAllowance?
        /// The lane's ``SchedulerLane/epoch``. It must be passed to
        /// ``Scheduler/conclude(lane:epoch:effect:failures:course:now:)``.
        package let epoch: Int
    }

    /// An order of the scheduler, to be performed by the caller.
    package enum Action: Hashable, Sendable {
        case claim(Claim)
        /// Drop pooled connections, because the path changed.
        case dropConnections
        /// End the attempts to an endpoint that may be repeated, because it is now reachable by another path. They are
        /// then repeated.
        case abort(Endpoint)
        /// Restart stalled transfers to an endpoint within their attempts, because there is a path again and their
        /// packets were lost.
        case restartStalled(Endpoint)
        /// End all attempts to an endpoint that began before the given time, because their path was lost and its grace
        /// period is over.
        case endLost(Endpoint, begunBefore: Moment)
        /// End the attempts of a lane that may be repeated, because a constraint of their requests is no longer met.
        case interrupt(lane: Int64)
        /// Release requests that are held for `auth`, and report the result as ``Event/released(_:_:)``.
        case release(HeldRelease)
        /// Read lanes from the store, and report them as ``Event/loaded(_:missing:)``.
        case load([Int64])
        /// Start to report the states of an endpoint as ``Event/gate(_:_:)``.
        case watch(Endpoint)
        /// Stop reporting the states of an endpoint.
        case unwatch(Endpoint)
        /// Probe the path to an endpoint for captive portals, and report the result as
        /// ``Event/portalProbed(_:probe:_:)``. Earlier probes of the path are obsolete.
        case probePortal(Endpoint, probe: Int)
    }

    var settings: Settings
    var random: SplitMix64
    var lanes: [Int64: SchedulerLane] = [:]
    var gates: [Endpoint: Gate] = [:]
    /// The endpoints of ``gates`` by their hosts.
    var endpoints: [String: [Endpoint]] = [:]
    /// The slots, and the lanes that wait for one. A lane that waits for a time is in ``timetable`` instead. A lane
    /// that only an event can change is in neither. ``schedule(_:now:)`` decides where a lane is.
    var slots: OriginSlots
    /// The times for which lanes wait.
    var timetable = Timetable<Int64, Moment>()
    /// The lanes that wait for their turn, because their hosts do not answer. A lane that has its turn waits for a slot.
    var turns: AttemptTurns
    /// The number of watched endpoints, and the lanes that wait for a watch.
    var watches: WatchTurns
    /// The lanes in memory and those that are being loaded. Those that may leave it are known while
    /// ``isMemoryContended``.
    var memory = SharedUse<Int64>()
    /// Whether lanes have been unloaded, and there are still many in memory.
    var isMemoryContended = false
    /// The lanes that are only in the store.
    var unloaded = UnloadedLanes()
    /// The times at which held requests are tried again. They need no slot, so that they come even if all slots are in use.
    var heldTimes = Timetable<HeldGroup, Moment>()
    /// The times of requests that are held for `auth`.
    var auth: AuthRetries
    /// The times at which the windows of lanes with requests in flight are checked.
    var windowEnds = Timetable<Int64, Moment>()
    /// The time of the wall clock at the moment zero.
    var wallAtStart = Timestamp(milliseconds: 0)
    /// The end of the first grace period of each endpoint whose path was lost.
    var graces = Timetable<Endpoint, Moment>()
    /// The time until which requests wait after the start, or after the last outage of any host.
    var spreadEnd: Moment = .zero
    /// The time until which requests wait after the start.
    var opensAt: Moment = .zero
    var isStopped = false
    /// The probes that ``handle(_:now:)`` orders next.
    var wantedProbes: [Action] = []
    /// The number of the last probe.
    var lastProbe = 0
    /// The latest `reconnectsUntil` of all endpoints.
    var lastReconnectEnds: Moment = .zero
    /// The lanes whose last attempts got no response, until the next response of their origin. Some may have recovered
    /// since.
    var unansweredLanes: [Origin: Set<Int64>] = [:]
    /// The watched endpoints that have no lanes, those that became idle first at the front.
    var idleEndpoints: [Endpoint] = []

    package init(settings: Settings = Settings(), seed: UInt64) {
        self.settings = settings
        random = SplitMix64(seed: seed)
        slots = OriginSlots(limits: OriginSlots.Limits(settings))
        auth = AuthRetries(intervals: settings.authRetries)
        turns = AttemptTurns(
            perSecond: settings.unansweredRate,
            burst: settings.unansweredBurst,
            keptLanes: min(settings.unansweredBurst, max(1, settings.maximumLanes / 16))
        )
        watches = WatchTurns(limit: settings.maximumWatches)
        opensAt = drawSpread(now: .zero)
    }

    /// Processes an event and returns the resulting actions, in the order in which they must be performed.
    ///
    /// Takes O(log lanes) for each affected lane. A gate event affects the lanes of its endpoint, and most other events
    /// affect the lanes that they name. A flush, new settings, and the first lane that cannot be in memory examine all
    /// lanes in memory.
    package mutating func handle(_ event: Event, now: Moment) -> [Action] {
        var actions: [Action] = []
        slots.advance(to: now)
        switch event {
        case .lanes(let lanes): for lane in lanes { add(lane, now: now, &actions) }
        case .loaded(let lanes, let missing): loaded(lanes, missing: missing, now: now, &actions)
        case .emptied(let lanes): for lane in lanes { emptied(lane, now: now) }
        case .gate(let endpoint, let state): gateChanged(endpoint, state, now: now, &actions)
        case .claimed(let lane, let taken, let use, let due):
            record(use, ofLane: lane, now: now)
            claimed(lane, taken: taken, due: due, now: now)
            removeIfIdle(lane, now: now, &actions)
        case .settled(let lane, let due, let isDistrusted):
            settled(lane, due: due, isDistrusted: isDistrusted, now: now)
            removeIfIdle(lane, now: now, &actions)
        case .nextClaimed(let lane, let taken, let use, let due):
            record(use, ofLane: lane, now: now)
            nextClaimed(lane, taken: taken, due: due, now: now)
            removeIfIdle(lane, now: now, &actions)
        case .credentialRejected(let scope, let request, let began):
            credentialRejected(scope, request, began: began, now: now, &actions)
        case .credentialAccepted(let scope, let request, let began):
            credentialAccepted(scope, request, began: began, now: now, &actions)
        case .credentialsChanged(let names):
            restartCredentials(now: now) { $0.credential.map(names.contains) ?? false }
        case .released(let release, let requests): released(release, requests)
        case .portalProbeHasFailed(let endpoint, let probe): presumeFailure(endpoint, probe, now: now)
        case .portalProbed(let endpoint, let probe, let finding):
            portalProbed(endpoint, probe, finding, now: now)
        case .wake: break
        case .settings(let settings): use(settings, now: now)
        case .flush(let selection): flush(selection, now: now)
        case .probeSucceeded(let origins): probeSucceeded(origins, now: now)
        case .stop:
            isStopped = true
            // Ends all grace periods now, because attempts without a path would only delay the stop.
            endGraces(until: .never, now: now, &actions)
        }
        endGraces(until: now, now: now, &actions)
        slots.endRampIfDone(now: now)
        checkWindows(now: now, &actions)
        tryHeld(now: now, &actions)
        wakeLanes(now: now)
        giveTurnsAndWatches(now: now, &actions)
        while loadLanes(now: now, &actions) { giveTurnsAndWatches(now: now, &actions) }
        grantSlots(now: now, &actions)
        if !isStopped { actions += wantedProbes }
        wantedProbes = []
        return actions
    }

    /// Returns the key of a lane; `nil` if the scheduler does not know the lane.
    package func key(ofLane id: Int64) -> LaneKey? { lanes[id]?.key }

    /// The number of slots in use.
    package var inflight: Int { slots.inflight }

    /// Returns whether there is no path to an endpoint, according to the last state of its gate.
    package func isGateDown(_ endpoint: Endpoint) -> Bool { gates[endpoint]?.state?.isDown == true }

    /// Returns the last state of an endpoint's gate; `nil` if the endpoint is not watched or has no state yet. A lane that
    /// claims requests is watched.
    package func gateState(of endpoint: Endpoint) -> GateState? { gates[endpoint]?.state }
}
