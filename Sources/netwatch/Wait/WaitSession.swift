internal import ClientCore
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability
internal import OfflineQueue

/// A run of `netwatch wait`.
struct WaitSession: WatchSession {
    /// The conditions of a run.
    struct Settings {
        var hosts: [NetworkHost] = []
        var goal = WaitCommand.Goal.routable
        /// The names of the interfaces; empty for any.
        var interfaces: [String] = []
        var isAny = false
        var stable = Duration.zero
        /// The timeout; `nil` for none.
        var timeout: Duration?
        /// The probe that is sent to each host; `.route` for none.
        var probe = ProbeChoice.route
        /// A URL whose response is 204 if there is no captive portal. Used if there are no hosts.
        var checkURL: String?
    }

    private let settings: Settings
    private let monitor = PathMonitor.shared
    let inbox = Inbox<WaitFinding>()
    private var condition: WaitCondition
    private var findings: [Int: WaitFinding] = [:]
    private let started = BootInstant.now

    private let probes: [(any Probe)?]

    /// - Throws: An error if a target cannot be probed in the way that the settings require.
    init(_ settings: Settings) throws(CommandError) {
        self.settings = settings
        probes = try Self.probes(settings)
        let parts = settings.goal == .carrier ? settings.interfaces.count : settings.hosts.count
        condition = WaitCondition(parts: max(1, parts), isAny: settings.isAny, stable: settings.stable)
    }

    /// The state of each part for people, and how long the wait took.
    typealias Outcome = (summaries: [String], duration: Duration)

    /// Waits for the condition.
    ///
    /// - Throws: After the timeout, an error that lists the parts that are not met. Otherwise an error if a state can
    ///   never be known.
    mutating func run() async throws(CommandError) -> Outcome {
        let sources = settings.goal == .carrier ? watchCarrier() : watchPaths()
        return try await watch(deadline: deadline, sources)
    }

    private var deadline: BootInstant? { settings.timeout.map { started + $0 } }

    mutating func take(
        _ finding: WaitFinding,
        from part: Int,
        now: BootInstant
    ) throws(CommandError) -> Outcome? {
        if let failure = finding.failure { throw failure }
        let isInterrupted = findings[part].map { $0.generation != finding.generation } ?? false
        condition.take(part: part, isMet: finding.isMet, isInterrupted: isInterrupted, now: now)
        findings[part] = finding
        return nil
    }

    func step(now: BootInstant) throws(CommandError) -> WatchStep<Outcome> {
        if let due = condition.due, due <= now {
            return .end((summaries(of: findings.keys.sorted()), started.duration(to: now)))
        }
        if let deadline, deadline <= now { throw timedOut() }
        return .wait(until: condition.due)
    }

    private func summaries(of parts: [Int]) -> [String] {
        parts.compactMap { findings[$0]?.summary }
    }

    private func timedOut() -> CommandError {
        let missing = condition.missing
        guard !missing.isEmpty else {
            let unsettled = "the condition has not lasted for \(DurationText.format(settings.stable)) yet"
            return CommandError(timedOutAfter: settings.timeout, missing: [unsettled], of: 1)
        }
        let known = summaries(of: missing).prefix(10)
        return CommandError(timedOutAfter: settings.timeout, missing: known, of: missing.count)
    }

    // MARK: Sources

    private static func targets(_ settings: Settings) -> [PathTarget] {
        guard settings.hosts.isEmpty else { return settings.hosts.map(PathTarget.host) }
        return [settings.checkURL.flatMap(loopbackHost).map(PathTarget.host) ?? .general]
    }

    /// Returns the host of a URL on this machine; `nil` for any other URL. The path to the public Internet does not lead
    /// to this machine.
    private static func loopbackHost(of url: String) -> NetworkHost? {
        guard let origin = try? Origin(url: url, allowsUserInfo: true), origin.isLoopback else { return nil }
        return NetworkHost(origin.host)
    }

    /// Returns the probe of each target; `nil` for a target that is not probed.
    private static func probes(_ settings: Settings) throws(CommandError) -> [(any Probe)?] {
        var probes: [(any Probe)?] = []
        if let url = settings.checkURL {
            try CommandError.requireUsableTransport()
            do throws(InvalidProbe) {
                probes.append(try CaptivePortalProbe.generate204(url))
            } catch {
                throw CommandError(.usage, "\(error)")
            }
        } else {
            for target in targets(settings) { probes.append(try settings.probe.probe(for: target)) }
        }
        return probes
    }

    private func watchPaths() -> [AnyObject] {
        let (inbox, monitor, interfaces) = (inbox, monitor, settings.interfaces)
        let isProbed = probes.map { $0 != nil }
        return monitor.watch(Self.targets(settings), probes: probes) { part, validated in
            var finding = Self.finding(validated.status, monitor, interfaces)
            if isProbed[part] { finding.require(validated) }
            inbox.put(finding, from: part)
        }
    }

    private static func finding(
        _ status: PathStatus,
        _ monitor: PathMonitor,
        _ interfaces: [String]
    ) -> WaitFinding {
        guard status.reason == .noNetlink else { return WaitFinding(status, interfaces: interfaces) }
        let failure = monitor.failure ?? SystemError(call: "netlink", errno: 0)
        return WaitFinding(failure: CommandError(netlink: failure))
    }

    private func watchCarrier() -> [AnyObject] {
        let inbox = inbox
        let interfaces = settings.interfaces.isEmpty ? [nil] : settings.interfaces.map(Optional.some)
        let watch = SnapshotWatch(monitor) { result in
            for (part, interface) in interfaces.enumerated() {
                switch result {
                case .success(let snapshot):
                    inbox.put(WaitFinding(snapshot, interface: interface), from: part)
                case .failure(let error): inbox.put(WaitFinding(failure: error), from: part)
                }
            }
        }
        return [watch]
    }
}

/// The condition of `netwatch wait`: whether it is met, and whether it has lasted long enough. It is a value.
///
/// It consists of parts: one for each host or, with `--for carrier`, for each named interface. Without names it has one
/// part.
struct WaitCondition {
    private let isAny: Bool
    private let stable: Duration
    /// The time since which each part has been met without interruption; `nil` for a part that is not met.
    private var since: [BootInstant?]

    /// - Parameters:
    ///   - parts: The number of parts, at least one.
    ///   - isAny: Whether one part is sufficient.
    ///   - stable: How long the parts must stay met.
    init(parts: Int, isAny: Bool, stable: Duration) {
        self.isAny = isAny
        self.stable = stable
        since = Array(repeating: nil, count: parts)
    }

    /// Records the state of one part.
    ///
    /// - Parameter isInterrupted: Whether the part was not met at some time between the previous call and this one.
    mutating func take(part: Int, isMet: Bool, isInterrupted: Bool, now: BootInstant) {
        if !isMet {
            since[part] = nil
        } else if since[part] == nil || isInterrupted {
            since[part] = now
        }
    }

    /// The time at which the condition is met if no part changes; `nil` if a part must change first.
    var due: BootInstant? {
        let met = since.compactMap(\.self)
        guard isAny || met.count == since.count else { return nil }
        return (isAny ? met.min() : met.max()).map { $0 + stable }
    }

    /// The parts that are not met.
    var missing: [Int] {
        since.indices.filter { since[$0] == nil }
    }
}

/// The current state of one part of a ``WaitCondition``.
struct WaitFinding: Sendable {
    private(set) var isMet: Bool
    /// A number that changes when the part was temporarily not met, or when its path changed.
    var generation: UInt64 = 0
    /// The state for people: `example.com is not reachable (no route)`.
    private(set) var summary: String
    /// The error because of which the state can never be determined; `nil` if there is none.
    var failure: CommandError?

    /// - Parameter interfaces: The interfaces that the path may use; empty for any.
    init(_ status: PathStatus, interfaces: [String]) {
        let isByThese =
            interfaces.isEmpty || status.path.map { interfaces.contains($0.interfaceName) } ?? false
        isMet = status.isReachable && isByThese
        generation = status.pathGeneration
        let names = interfaces.map { "`\($0)`" }.joined(separator: " or ")
        let restriction = status.isReachable && !isByThese ? ", but not over \(names)" : ""
        let state = "\(status.reachability.summary) (\(status.summary))"
        summary = "\(status.target.subject) is \(state)\(restriction)"
    }

    /// Creates the state of an interface, which is met if the interface has a carrier.
    ///
    /// - Parameter interface: The name of the interface; `nil` for any interface except loopback.
    init(_ snapshot: NetworkSnapshot, interface: String?) {
        let links = snapshot.interfaces.filter { link in
            interface.map { link.name == $0 } ?? (link.type != .loopback)
        }
        isMet = links.contains(where: \.hasCarrier)
        let subject = interface.map { "`\($0)`" }
        guard !links.isEmpty else {
            summary = subject.map { "there is no interface \($0)" } ?? "there is no interface but loopback"
            return
        }
        summary =
            isMet
            ? "\(subject ?? "an interface") has a carrier"
            : subject.map { "\($0) has no carrier" } ?? "no interface has a carrier"
    }

    /// Adds the result of a probe. The state is only met if the probe was successful, too.
    mutating func require(_ validated: ValidatedStatus) {
        guard validated.status.isReachable else { return }
        isMet = isMet && validated.validation == .valid
        let subject = validated.status.target.subject
        let answer =
            validated.validation == .none
            ? "has not responded yet" : "is \(validated.stateText) (\(validated.summary(separator: ", ")))"
        summary = "\(subject) \(answer)"
    }

    init(failure: CommandError) {
        isMet = false
        summary = failure.message
        self.failure = failure
    }
}
