internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import OfflineQueue

/// Counts the attempts of the queue by their results, and measures how long requests waited until their delivery. Pushes
/// of metrics are not counted, because a collector that refuses them is no fault of the users' requests; see
/// ``PushMeter``.
final class QueueMeter: Sendable {
    /// The result of an attempt: what became of its request.
    enum Result: String, CaseIterable {
        case delivered, postponed, held, dead, cancelled
    }

    struct Values {
        var attempts: [Result: Int] = [:]
        /// From the time when each request was stored to its delivery, by the wall clock. If the clock is set, this is
        /// wrong until the store has adjusted its times, within a minute.
        var delays = DurationHistogram(limits: QueueMeter.delayLimits)
    }

    /// From a tenth of a second to a week, the default time to live of a request.
    private static let delayLimits: [Duration] = [
        .milliseconds(100), .seconds(1), .seconds(10), .seconds(60), .seconds(600), .seconds(3600),
        .seconds(6 * 3600), .seconds(86_400), .seconds(7 * 86_400),
    ]

    private let state = Lock(Values())

    /// The values since the service started.
    var values: Values { state.withLock { $0 } }

    /// Records the events until they end. Events that are lost because this task is too far behind are not counted; see
    /// ``QueueEvents``.
    func run(_ events: QueueEvents) async {
        for await event in events { record(event) }
    }

    func record(_ event: QueueEvent) {
        guard !event.isOfMetricsPush, let result = Result(event) else { return }
        state.withLock { state in
            state.attempts[result, default: 0] += 1
            guard result == .delivered, let stored = event.stored else { return }
            // The wall clock may have been set back.
            state.delays.add(.seconds(max(0, event.date.timeIntervalSince(stored))))
        }
    }
}

extension QueueMeter.Result {
    /// Returns `nil` for an event that is not the end of an attempt.
    fileprivate init?(_ event: QueueEvent) {
        guard event.oldState == .inflight else { return nil }
        switch event.newState {
        case .delivered: self = .delivered
        case .pending, .blocked: self = .postponed
        case .held: self = .held
        case .dead: self = .dead
        case .cancelled, .superseded: self = .cancelled
        case .inflight, nil: return nil
        }
    }
}

/// What this process uses. A value that cannot be read is `nil`.
struct ProcessUsage {
    let started: Date
    let cpuSeconds: Double?
    let residentBytes: Double?
    let openDescriptors: Double?
    let maximumDescriptors: Double?

    /// Reads the current values (`proc(5)`, `getrusage(2)`).
    init(started: Date) {
        self.started = started
        var usage = rusage()
        cpuSeconds =
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0
            ? usage.ru_utime.seconds + usage.ru_stime.seconds : nil
        let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
        residentBytes = pages?.dropFirst().first.flatMap { Double($0) }.map {
            $0 * Double(sysconf(CInt(_SC_PAGESIZE)))
        }
        openDescriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map {
            // One of them is the directory itself.
            Double($0.count - 1)
        }
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        maximumDescriptors = isKnown ? Double(limit.rlim_cur) : nil
    }
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1_000_000 }
}
