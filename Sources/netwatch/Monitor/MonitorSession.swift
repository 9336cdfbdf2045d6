internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchService
internal import NetworkReachability
internal import Synchronization

/// A run of `netwatch monitor`.
struct MonitorSession {
    /// An event from another thread.
    private enum Event: Sendable {
        case snapshot(NetlinkSnapshot)
        case path(PathStatus)
        case failure(CommandError)
    }

    /// The sources of events. Only the newest event of each is kept.
    private enum Source: Int {
        case snapshot, path, failure
    }

    private let format: OutputFormat
    private let isRaw: Bool
    private let inbox = Inbox<Event>()
    private let encoder = ControlMessage.encoder
    private var snapshot: NetlinkSnapshot?
    private var path = HostRecord(.general)
    /// The first path status, if it arrives before the first snapshot. It is printed after that snapshot.
    private var waitingPath: PathStatus?

    init(format: OutputFormat, isRaw: Bool) {
        self.format = format
        self.isRaw = isRaw
    }

    /// Runs until an error occurs.
    mutating func run(_ recorder: NotificationRecorder?) async throws(CommandError) {
        let watch = try NetworkWatch.starting(try handlers(recorder))
        let inbox = inbox
        let pathWatch =
            isRaw
            ? nil : PathMonitor.shared.watch(.general) { inbox.put(.path($0), from: Source.path.rawValue) }
        defer { withExtendedLifetime((watch, pathWatch)) {} }
        for await _ in inbox.wakeups {
            for (_, event) in inbox.take() { try take(event) }
        }
    }

    private func handlers(_ recorder: NotificationRecorder?) throws(CommandError) -> NetworkWatch.Handlers {
        let inbox = inbox
        let printer = isRaw ? Mutex(NotificationPrinter(format: format, names: try namesNow())) : nil
        var handlers = NetworkWatch.Handlers()
        handlers.onReceived = { received in
            let record = NetlinkRecording.Record(now: received)
            do throws(CommandError) {
                try recorder?.add(record)
            } catch {
                inbox.put(.failure(error), from: Source.failure.rawValue)
            }
            // Printing blocks while the reader of the output is slow. Then the kernel drops notifications, and a line
            // with `lost` is printed.
            printer?.withLock { $0.print(record) }
        }
        handlers.onFailure = { inbox.put(.failure(NetworkWatch.failure($0)), from: Source.failure.rawValue) }
        guard !isRaw else { return handlers }
        handlers.onSnapshot = { inbox.put(.snapshot($0), from: Source.snapshot.rawValue) }
        return handlers
    }

    private func namesNow() throws(CommandError) -> [UInt32: String] {
        do {
            return try NetlinkSnapshot(reading: RequestSocket()).links.mapValues(\.name)
        } catch {
            throw NetworkWatch.failure(error)
        }
    }

    // MARK: Output

    private mutating func take(_ event: Event) throws(CommandError) {
        switch event {
        case .failure(let error): throw error
        case .snapshot(let new): take(new)
        case .path(let status) where snapshot == nil: waitingPath = status
        case .path(let status): take(status)
        }
    }

    private mutating func take(_ new: NetlinkSnapshot) {
        let differences = snapshot.map { new.differences(from: $0) } ?? new.everything
        snapshot = new
        let now = Date()
        for difference in differences { print(NetworkLine(difference, time: now)) }
        if let status = waitingPath { take(status) }
        waitingPath = nil
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
