internal import Foundation
internal import Logging
internal import NetwatchEventLoop
internal import OfflineQueue

/// Logs the requests that the queue holds or gives up, and the lanes that servers close.
///
/// At most 10 lines about a host and 100 lines in total are logged per minute. One more line then has the number of the
/// others.
actor QueueLog {
    /// The length of a period of the quota.
    private static let period = Duration.seconds(60)
    /// The maximum length of a reason and of a label, in bytes.
    private static let longestText = 500

    private let logger: Logger
    private var quota = LogQuota(linesPerHost: 10, lines: 100)

    init(_ logger: Logger) { self.logger = logger }

    /// Logs the events until they end.
    func run(_ events: QueueEvents) async {
        async let _ = renewQuota()
        for await event in events { log(event) }
        endPeriod()
    }

    private func renewQuota() async {
        while (try? await Task.sleep(for: Self.period)) != nil { endPeriod() }
    }

    /// Logs how many lines of the period are missing, and begins the next period.
    func endPeriod() {
        let omitted = quota.renew()
        guard omitted > 0 else { return }
        logger.warning("lines about requests and lanes that were not logged in the last minute: \(omitted)")
    }

    func log(_ event: QueueEvent) {
        // `MetricsPusher` logs the outcomes of pushes.
        if event.isOfMetricsPush { return }
        switch event.kind {
        case .dead, .expired, .held, .laneClosed, .laneOpened:
            guard quota.admits(event.host ?? "") else { return }
            write(event)
        default: break
        }
    }

    private func write(_ event: QueueEvent) {
        let host = event.host ?? "", id = event.requestID ?? ""
        let reason = event.reason.map { ": \($0.printable(upTo: Self.longestText))" } ?? ""
        let fields = fields(of: event)
        switch (event.kind, event.holdReason) {
        case (.held, .user?):
            logger.info(
                "request `\(id)` to `\(host)` is held until a user releases it\(reason)",
                metadata: fields
            )
        case (.held, let hold):
            let cause = hold?.rawValue ?? "an unknown reason"
            logger.warning("request `\(id)` to `\(host)` is held for `\(cause)`\(reason)", metadata: fields)
        case (.laneClosed, _), (.laneOpened, _): writeLane(event, host, fields)
        default: logger.warning("request `\(id)` to `\(host)` was given up\(reason)", metadata: fields)
        }
    }

    private func writeLane(_ event: QueueEvent, _ host: String, _ fields: Logger.Metadata) {
        let label = label(of: event).map { " `\($0)`" } ?? ""
        let owner = event.submitter.map { " of the user \($0)" } ?? ""
        guard let due = event.due?.rfc3339 else {
            logger.notice("the lane\(label)\(owner) to `\(host)` is open again", metadata: fields)
            return
        }
        let cause = event.status.map { "HTTP \($0)" } ?? "a response"
        logger.notice(
            "the lane\(label)\(owner) to `\(host)` is closed until \(due) by \(cause)",
            metadata: fields
        )
    }

    private func label(of event: QueueEvent) -> String? {
        event.lane.map { $0.printable(upTo: Self.longestText) }
    }

    private func fields(of event: QueueEvent) -> Logger.Metadata {
        let status = event.status.map { "HTTP \($0)" }
        let cause: String? =
            switch event.kind {
            case .held: event.holdReason?.rawValue
            case .expired: event.kind.rawValue
            default: status
            }
        return .fields([
            .host: event.host, .requestID: event.requestID, .lane: label(of: event), .cause: cause,
        ])
    }
}

/// Limits the number of lines in a period, for each host and for all hosts together. One host whose requests fail all
/// the time leaves lines for the others.
struct LogQuota {
    /// The maximum number of lines about one host in a period.
    let linesPerHost: Int
    /// The maximum number of lines in a period.
    let lines: Int

    private var counts: [String: Int] = [:]
    private var total = 0
    private var omitted = 0

    init(linesPerHost: Int, lines: Int) {
        self.linesPerHost = linesPerHost
        self.lines = lines
    }

    /// Counts a line, and returns whether it is within the limits.
    mutating func admits(_ host: String) -> Bool {
        guard total < lines, counts[host, default: 0] < linesPerHost else {
            omitted += 1
            return false
        }
        counts[host, default: 0] += 1
        total += 1
        return true
    }

    /// Begins the next period. Returns the number of lines of the last one that were not within the limits.
    mutating func renew() -> Int {
        defer { self = LogQuota(linesPerHost: linesPerHost, lines: lines) }
        return omitted
    }
}
