internal import ArgumentParser
internal import NetwatchNetlink

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
