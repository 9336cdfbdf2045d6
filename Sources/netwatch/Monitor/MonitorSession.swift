internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchService
internal import NetworkReachability

/// A run of `netwatch monitor`.
struct MonitorSession: WatchSession {
    /// An event from another thread.
    enum Event: Sendable {
        case snapshot(NetworkSnapshot)
        case failure(CommandError)
    }

    /// The sources of events. Only the newest event of each is kept.
    private enum Source: Int {
        case snapshot, failure
    }

    private let format: OutputFormat
    private let isRaw: Bool
    /// The interfaces whose lines are printed; empty for all, and for the path.
    private let devices: Set<String>
    let inbox = Inbox<Event>()
    private let encoder = ControlMessage.encoder
    /// The printed interfaces; `nil` at the beginning.
    private var interfaces: [NetworkInterface]?
    private var newest: NetworkSnapshot?
    /// When to print the differences between ``newest`` and ``interfaces``; `nil` if there are none.
    private var due: BootInstant?
    private var path = HostRecord(.general)

    init(format: OutputFormat, isRaw: Bool, devices: Set<String>) {
        self.format = format
        self.isRaw = isRaw
        self.devices = devices
    }

    /// Runs until an error occurs.
    mutating func run(_ recorder: NotificationRecorder?) async throws(CommandError) {
        let needsNotifications = isRaw || recorder != nil
        let notifications = try needsNotifications ? NotificationWatch.starting(handlers(recorder)) : nil
        let snapshots = isRaw ? nil : watchSnapshots()
        let sources: [AnyObject?] = [notifications, snapshots]
        try await watch(sources.compactMap(\.self))
    }

    mutating func step(now: BootInstant) -> WatchStep<Void> {
        if let due, due <= now { printInterfaces() }
        return .wait(until: due)
    }

    private func watchSnapshots() -> SnapshotWatch {
        let inbox = inbox
        return SnapshotWatch { result in
            switch result {
            case .success(let snapshot): inbox.put(.snapshot(snapshot), from: Source.snapshot.rawValue)
            case .failure(let error): inbox.put(.failure(error), from: Source.failure.rawValue)
            }
        }
    }

    private func handlers(_ recorder: NotificationRecorder?) -> NotificationWatch.Handlers {
        let inbox = inbox
        let printer = isRaw ? Lock(NotificationPrinter(format: format, devices: devices)) : nil
        return NotificationWatch.Handlers { record in
            do throws(CommandError) {
                try recorder?.add(record)
            } catch {
                inbox.put(.failure(error), from: Source.failure.rawValue)
            }
            // Printing blocks while the reader of the output is slow. Then the kernel drops notifications, and a line
            // with `lost` is printed.
            printer?.withLock { $0.print(record) }
        } onFailure: { error in
            inbox.put(.failure(CommandError(netlink: error)), from: Source.failure.rawValue)
        }
    }

    // MARK: Output

    mutating func take(_ event: Event, from _: Int, now: BootInstant) throws(CommandError) -> Void? {
        switch event {
        case .failure(let error): throw error
        case .snapshot(let snapshot):
            let pathChanged = devices.isEmpty && newest?.general != snapshot.general
            newest = snapshot
            if interfaces == nil { printInterfaces() }
            if snapshot.interfaces != interfaces, due == nil {
                // The delay leaves out changes that are reverted at once.
                due = now + PathMonitor.Configuration.defaultSettle
            }
            if pathChanged { take(snapshot.general) }
            return nil
        }
    }

    private mutating func printInterfaces() {
        due = nil
        guard let newest else { return }
        let now = Date()
        for difference in newest.interfaces.differences(from: interfaces) {
            let line = NetworkLine(difference, time: now)
            if devices.isEmpty || devices.contains(line.interface) { print(line) }
        }
        interfaces = newest.interfaces
    }

    private func print(_ line: NetworkLine) {
        switch format {
        case .text: Printer.line(line.text)
        case .json: Printer.json(line, with: encoder)
        }
    }

    private mutating func take(_ path: PathStatus) {
        let status = ValidatedStatus(status: path, probe: nil)
        let displaysTheSame = self.path.displaysLike(status)
        var line = self.path.take(status, now: .now, time: Date())
        line.type = "path"
        switch format {
        case .text where displaysTheSame: break
        case .text: Printer.line(line.pathText)
        case .json: Printer.json(line, with: encoder)
        }
    }
}
