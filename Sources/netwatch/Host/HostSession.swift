internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// A run of `netwatch host`, which receives statuses, prints them and decides when to end.
struct HostSession: WatchSession {
    /// The output and end conditions of a run.
    struct Settings {
        var format = OutputFormat.text
        var isLive = false
        /// Whether to end after every host was reported once.
        var isOnce = false
        /// The number of lines after which to end.
        var count: Int?
        /// The state that ends the run as soon as all hosts have it; with `isAny`, as soon as one host has it.
        var until: Reachability?
        var isAny = false
        /// How long to wait for ``until``; `nil` for no limit.
        var timeout: Duration?
        /// The probe to send in addition to evaluating the kernel's routes.
        var probe = ProbeChoice.route
        /// How often to repeat the probe over the same path.
        var interval: Duration = PathValidator.defaultInterval
        /// Whether to print the durations of the steps of each probe whose result is printed.
        var showsPhases = false
    }

    private let settings: Settings
    private let monitor: PathMonitor
    let inbox = Inbox<ValidatedStatus>()
    private var records: [HostRecord]
    private let probes: [(any Probe)?]
    private let hostWidth: Int
    private var printed = 0
    /// The number of hosts in each state.
    private var states: [Reachability: Int] = [:]
    private var warned: SystemError?
    private var table = LiveTable()
    /// The terminal of the table; `nil` without one.
    private let terminal: LiveTerminal?
    private var signals: SignalWatch?

    /// - Throws: An error if a target cannot be probed as the settings require.
    init(
        _ targets: [PathTarget],
        settings: Settings,
        monitor: PathMonitor = .shared
    ) throws(CommandError) {
        self.settings = settings
        self.monitor = monitor
        terminal = settings.isLive ? LiveTerminal() : nil
        var probes: [(any Probe)?] = []
        for target in targets { probes.append(try settings.probe.probe(for: target)) }
        self.probes = probes
        records = zip(targets, probes).map { HostRecord($0, probeName: $1?.name) }
        hostWidth = min(max(20, targets.map { $0.title.count }.max() ?? 0), 40)
    }

    /// Runs until an end condition of the settings is met, or without end.
    ///
    /// - Returns: The exit status of the command.
    mutating func run() async throws(CommandError) -> ExitStatus {
        signals = catchSignals()
        let sources = [startTerminal()].compactMap(\.self) + sources()
        // The table shows times.
        let interval: Duration? = settings.isLive ? .seconds(1) : nil
        return try await watch(deadline: deadline, interval: interval, sources)
    }

    private func sources() -> [AnyObject] {
        let (inbox, isProbed) = (inbox, probes.map { $0 != nil })
        let targets = records.map(\.target)
        let lookups = zip(targets, isProbed).map { $0.isLookedUp && $1 ? LookupTime() : nil }
        return monitor.watch(targets, probes: probes, interval: settings.interval) { index, reported in
            let validated = lookups[index]?.adding(to: reported) ?? reported
            // A path that has not been probed yet has no result to report.
            if validated.probe != nil || !validated.status.isReachable || !isProbed[index] {
                inbox.put(validated, from: index)
            }
        }
    }

    mutating func step(now: BootInstant) throws(CommandError) -> WatchStep<ExitStatus> {
        draw(now: now)
        if let signal = signals?.caught {
            summarize(now: now)
            SignalWatch.endProcess(by: signal)
        }
        if terminal?.isQuit == true {
            summarize(now: now)
            return .end(earlyStatus)
        }
        guard let status = try ending(now: now) else { return .wait(until: nil) }
        terminal?.leave()
        return .end(status)
    }

    /// Prepares the terminal for the table, if there is one.
    private func startTerminal() -> JobSignals? {
        guard let terminal else { return nil }
        let inbox = inbox
        terminal.enter()
        terminal.readKeys { inbox.wake() }
        return JobSignals {
            terminal.leave()
        } afterContinue: {
            terminal.enter()
            inbox.wake()
        }
    }

    // MARK: Ending

    /// Catches the signals after which a summary is printed. JSON output has no summary, so signals keep their default
    /// action there.
    private func catchSignals() -> SignalWatch? {
        guard settings.format == .text, !settings.isOnce else { return nil }
        let (inbox, terminal) = (inbox, terminal)
        // A terminal hangup or Ctrl-\ must not leave the cursor hidden.
        let signals = settings.isLive ? [SIGINT, SIGTERM, SIGHUP, SIGQUIT] : [SIGINT, SIGTERM]
        return SignalWatch(signals, beforeEnding: { terminal?.leave() }, onSignal: { inbox.wake() })
    }

    private let started = BootInstant.now

    private var deadline: BootInstant? {
        settings.timeout.map { started + $0 }
    }

    private func ending(now: BootInstant) throws(CommandError) -> ExitStatus? {
        if settings.isOnce {
            return states.values.reduce(0, +) == records.count ? worst.exitStatus : nil
        }
        guard let until = settings.until else { return nil }
        if isReached(until) { return .yes }
        guard let deadline, deadline <= now else { return nil }
        terminal?.leave()
        throw timedOut(waitingFor: until)
    }

    /// The exit status if the run ends after ``Settings/count`` lines, or because the user wants it.
    private var earlyStatus: ExitStatus {
        settings.until.map(isReached) == false ? .no : .yes
    }

    /// Returns whether the hosts have the state that ends the run.
    private func isReached(_ until: Reachability) -> Bool {
        let count = states[until, default: 0]
        return settings.isAny ? count > 0 : count == records.count
    }

    /// The worst state of any host: not reachable, then unknown, then reachable.
    private var worst: Reachability {
        [.notReachable, .unknown].first { states[$0, default: 0] > 0 } ?? .reachable
    }

    private func timedOut(waitingFor until: Reachability) -> CommandError {
        let others = records.filter { $0.tally?.state != until }
        let details = others.prefix(5).map { record in
            guard let status = record.newest else { return "\(record.target.subject) is still unknown" }
            return "\(record.target.subject) is \(status.stateText) (\(status.summary(separator: ", ")))"
        }
        return CommandError(timedOutAfter: settings.timeout, missing: details, of: others.count)
    }

    /// Prints a summary of each host on standard output.
    private func summarize(now: BootInstant) {
        terminal?.leave()
        // The terminal may have just echoed `^C`. Otherwise the line separates the summary from the table.
        if Terminal.isAvailable { Printer.data("") }
        for record in records {
            guard let summary = record.summary(now: now) else { continue }
            Printer.line("\(record.target.title.padded(to: hostWidth))  \(summary)")
        }
    }

    // MARK: Output

    mutating func take(_ status: ValidatedStatus, from index: Int, now: BootInstant) -> ExitStatus? {
        warnOfFailure()
        if let before = records[index].tally?.state { states[before, default: 0] -= 1 }
        states[status.reachability, default: 0] += 1
        let isRepeated = records[index].isRepeated(by: status)
        let displaysTheSame = records[index].displaysLike(status)
        let line = records[index].take(status, now: now, time: Date())
        if settings.isLive || isRepeated { return nil }
        switch settings.format {
        case .text where displaysTheSame: return nil
        case .text:
            Printer.line(line.text(hostWidth: hostWidth))
            if settings.showsPhases, let phases = line.phases?.text {
                Printer.line(String(repeating: " ", count: 14) + phases)
            }
        case .json: Printer.json(line, with: encoder)
        }
        printed += 1
        return printed == settings.count ? earlyStatus : nil
    }

    // Stored, because creating an encoder takes longer than using it.
    private let encoder = ControlMessage.encoder

    private mutating func warnOfFailure() {
        let failure = monitor.failure
        defer { warned = failure }
        guard let failure, failure != warned else { return }
        Printer.warning("netlink is unavailable (\(failure)), so reachability is unknown")
    }

    private mutating func draw(now: BootInstant) {
        let (columns, rows) = Terminal.size
        terminal?.draw { isFresh in
            if isFresh { table = LiveTable() }
            return table.drawing(records, now: now, columns: columns, rows: rows)
        }
    }
}

extension PathTarget {
    /// Whether the monitor looks up a name for the target.
    fileprivate var isLookedUp: Bool {
        guard case .host(let host) = self else { return false }
        return NameResolver.localAddresses(of: host.text) == nil
    }
}

/// The duration of the lookup of a watched name. The monitor looks the name up before it reports the first status.
final class LookupTime: Sendable {
    private let started = ContinuousClock.now
    private let duration = Lock<Duration?>(nil)

    /// Records the time of the first status, and returns the status with the duration in the phases of its probe.
    func adding(to status: ValidatedStatus) -> ValidatedStatus {
        let lookup = duration.withLock { duration in
            if duration == nil { duration = started.duration(to: .now) }
            return duration
        }
        guard var result = status.probe, result.phases != nil else { return status }
        result.phases?.lookup = lookup
        return ValidatedStatus(status: status.status, probe: result)
    }
}
