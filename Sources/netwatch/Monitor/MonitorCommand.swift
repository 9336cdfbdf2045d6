internal import ArgumentParser
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchService
internal import NetworkReachability

/// The `netwatch monitor` command.
struct MonitorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Show interfaces, addresses and the path to the Internet, then one line per change.",
        discussion: """
            netwatch monitor
            netwatch monitor --dev eth0 --dev wlan0
            netwatch monitor --raw --format json
            netwatch monitor --record changes.nwr
            netwatch monitor --replay changes.nwr

            The command first prints the current state, then one line per change. It does not show changes that \
            are reverted within 30 ms. --raw prints every notification of the kernel as it arrives.

            --record also writes the interfaces and addresses of the beginning, and then each notification, to a \
            file that only this user can read. --replay prints the notifications of such a file as --raw does, \
            without querying the kernel. --dev does not affect what is recorded.

            Without --replay, the command runs until a signal ends it. Exit status: 0 after --replay; 2 if \
            netlink is unavailable or a write to the recording fails; 64 for wrong arguments, a recording that \
            cannot be created, and one that is damaged or from a newer version.
            """
    )

    @Option(
        help: .init(
            "Print only lines about this interface, and no lines about the path. Repeatable. Default: all.",
            valueName: "interface"
        )
    )
    var dev: [String] = []

    @Flag(help: "Print each notification of the kernel, decoded.")
    var raw = false

    @Option(help: "Also write each notification to this file, which must not exist.")
    var record: ArgumentBytes?

    @Flag(help: "With --record: replace an existing file.")
    var force = false

    @Option(help: "Print this recording instead of watching.")
    var replay: ArgumentBytes?

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object per line.")
    var format = OutputFormat.text

    @OptionGroup var color: ColorOption

    func validate() throws {
        if dev.contains("") { throw ValidationError("`--dev` must not be empty") }
        for (name, path) in [("--record", record), ("--replay", replay)] where path?.bytes.isEmpty == true {
            throw ValidationError("`\(name)` must not be empty")
        }
        if force, record == nil { throw ValidationError("`--force` requires `--record`") }
        if replay != nil, record != nil {
            throw ValidationError("`--replay` cannot be combined with `--record`")
        }
    }

    mutating func run() async throws {
        let devices = Set(dev)
        if let replay {
            return try Self.replay(replay, NotificationPrinter(format: format, devices: devices))
        }
        var session = MonitorSession(format: format, isRaw: raw, devices: devices)
        let recorder = try record.map { try NotificationRecorder($0, replacesExisting: force) }
        Printer.exitWhenReaderExits()
        try await session.run(recorder)
    }

    /// Prints a recording after checking that it is complete. The check also provides the names of interfaces that the
    /// recording contains only later.
    private static func replay(_ path: ArgumentBytes, _ printer: NotificationPrinter) throws(CommandError) {
        do {
            var printer = printer
            _ = try NetlinkRecording.check(path.cString) { printer.learnFirstNames(in: $0) }
            var reader = try NetlinkRecording.Reader.opening(path.cString)
            while let record = try reader.next() { printer.print(record) }
            printer.noteIfEmpty()
        } catch {
            throw CommandError(.usage, "could not replay \(Printer.quoted(path.description)): \(error)")
        }
    }
}

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
