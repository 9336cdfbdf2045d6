internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// The part of `netwatch status` that comes from the service.
struct ServiceSummary: Encodable, Sendable {
    /// Whether the service responds.
    enum State: String, Encodable {
        case running, busy, notRunning, notPermitted, notAnswering
    }

    /// The state of the queue.
    struct Queue: Encodable {
        /// The number of requests in each state.
        var counts: QueueCounts
        /// When the oldest unfinished request was created.
        var oldest: Date?
        /// Whether the whole queue is paused.
        var paused: Bool
        /// The number of closed lanes that have requests. The service lists only some of the lanes if there are many,
        /// so at `QueueStatistics.maximumPausedLanes` or more the number is a lower bound.
        var closedLanes: Int
        /// Whether the queue refuses new requests, because its disk is full.
        var diskFull: Bool

        init(_ statistics: QueueStatistics) {
            counts = statistics.counts
            oldest = statistics.oldest
            paused = statistics.isPaused
            closedLanes = statistics.closedLanes.count
            diskFull = statistics.isDiskFull
        }
    }

    var state: State
    var socket: String
    /// The id of the listening process.
    var pid: Int32?
    /// The user of the listening process.
    var user: UInt32?
    var queue: Queue?
    /// The response that ``queue`` comes from.
    var statistics: QueueStatistics?
    /// The state of the service's resolver.
    var names: ControlMessage.Names?
    /// The number of addresses whose path only the lookup of all addresses once a minute has corrected.
    var auditCorrections: Int?
    /// When the last good configuration was stored, if the service uses it instead of its files.
    var lastGood: Date?
    /// The last reload of the configuration.
    var reload: ControlMessage.LastReload?
    /// The scans of the store.
    var scan: ControlMessage.Scan?
    /// The error of the query; `nil` if the service responded, or if no connection could be made.
    var failure: CommandError?

    private enum CodingKeys: String, CodingKey {
        case state, socket, pid, queue, names, auditCorrections, lastGood, reload, scan
    }

    /// Queries the service.
    ///
    /// - Parameters:
    ///   - path: The path of its socket.
    ///   - timeout: How long to wait for the responses. Should be short, because all of the output waits for it.
    static func asking(_ path: ArgumentBytes, timeout: Duration) async -> ServiceSummary {
        do throws(SystemError) {
            let process = try ServiceProcess.credentials(listeningAt: path.bytes)
            let client = ServiceClient(path: path, busyTimeout: .zero)
            var summary = await asking(client, at: path.description, pid: process.pid, within: timeout)
            summary.user = process.uid
            return summary
        } catch {
            return ServiceSummary(state: state(error), socket: path.description)
        }
    }

    private static func asking(
        _ client: ServiceClient,
        at socket: String,
        pid: Int32,
        within limit: Duration
    ) async -> ServiceSummary {
        // The service is shown as running even if it does not respond to these two in time.
        async let names = try? client.get("/v1/names", within: limit, as: ControlMessage.Names.self)
        async let status = try? client.get("/v1/status", within: limit, as: ControlMessage.Status.self)
        do throws(CommandError) {
            let statistics = try await client.get(
                "/v1/queue/stats",
                within: limit,
                as: QueueStatistics.self
            )
            let (answer, resolver) = await (status, names)
            return ServiceSummary(
                state: .running,
                socket: socket,
                pid: pid,
                queue: Queue(statistics),
                statistics: statistics,
                names: resolver,
                auditCorrections: answer?.auditCorrections,
                lastGood: answer?.lastGood,
                reload: answer?.reload,
                scan: answer?.scan
            )
        } catch {
            return ServiceSummary(state: state(error.status), socket: socket, pid: pid, failure: error)
        }
    }

    private static func state(_ error: SystemError) -> State {
        switch error.errno {
        case EACCES, EPERM: .notPermitted
        // The backlog of the service's socket is full.
        case EAGAIN: .busy
        default: .notRunning
        }
    }

    /// - Parameter failure: The exit status for a query that failed after the connection was made.
    private static func state(_ failure: ExitStatus) -> State {
        switch failure {
        case .tryAgain: .busy
        case .noPermission: .notPermitted
        case .unavailable: .notRunning
        default: .notAnswering
        }
    }

    /// 0 if the queue works by itself, 1 if it needs a user's attention, 2 if its state is unknown.
    var queueStatus: ExitStatus {
        guard let queue else { return .unknown }
        return queue.needsAttention || storeText != nil ? .no : .yes
    }

    // MARK: For people

    var summary: String {
        let process = pid.map { ", pid \($0)" } ?? ""
        switch state {
        case .running: return "running" + process
        case .busy: return "busy\(process): the limit of connections is reached, in total or for this user"
        case .notRunning: return "not running (no process listens on `\(socket)`)"
        case .notPermitted: return "running, but this user may not use `\(socket)`"
        case .notAnswering:
            let conflict = CommandError.unusableTransport
            return conflict.map { "cannot be queried: \($0.message)" } ?? "not responding in time\(process)"
        }
    }

    /// The corrected paths; `nil` if there are none, which is the normal case.
    var auditText: String? {
        guard let auditCorrections, auditCorrections > 0 else { return nil }
        return "\(CountText.format(auditCorrections, "path")) corrected after up to a minute"
    }

    /// Why the service does not use its configuration files; `nil` if it uses them, which is the normal case.
    var configurationText: String? {
        if let lastGood {
            return
                "the last good one, of \(lastGood.rfc3339), because the service cannot use its files; `netwatch doctor` "
                + "prints the reason"
        }
        guard let reload, reload.refused else { return nil }
        return
            "reloaded without effect at \(reload.time.rfc3339), because the files have faults; `netwatch config check` "
            + "prints them"
    }

    /// The damage that scans have found, and a full disk; `nil` if there is neither, which is the normal case.
    var storeText: String? {
        let damage = scan.flatMap { $0.findingCount > 0 ? $0.findingCount : nil }.map {
            "damaged: a scan has found \(CountText.format($0, "problem"))"
        }
        let fullDisk =
            queue?.diskFull == true ? "the disk is full, so new requests are refused, large ones first" : nil
        let problems = [damage, fullDisk].compactMap(\.self)
        guard !problems.isEmpty else { return nil }
        return "\(problems.joined(separator: "; ")); `netwatch doctor` shows what to do"
    }

    func queueText(now: Date) -> String? {
        guard let queue else { return nil }
        let counts = queue.counts.words()
        let age = queue.oldest.map { Duration.seconds(now.timeIntervalSince($0)) }
        let oldest = age.map { ["oldest \(DurationText.format($0))"] } ?? []
        let parts =
            (counts.isEmpty ? ["empty"] : counts + oldest) + (queue.paused ? ["paused"] : [])
            + queue.closedText
        return parts.joined(separator: ", ")
    }
}

extension ServiceSummary.Queue {
    /// Whether requests stay in the queue until a user acts: the queue is paused, or requests are held or dead.
    fileprivate var needsAttention: Bool {
        paused || [QueuedRequest.State.held, .dead].contains { counts[$0] > 0 }
    }

    /// The number of closed lanes for people; empty if no lane is closed.
    fileprivate var closedText: [String] {
        switch closedLanes {
        case 0: []
        case 1: ["1 lane closed"]
        case ..<QueueStatistics.maximumPausedLanes: ["\(closedLanes) lanes closed"]
        default: ["\(closedLanes) or more lanes closed"]
        }
    }
}
