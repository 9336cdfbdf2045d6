internal import ArgumentParser
internal import NetwatchNetlink

/// The `netwatch monitor` command.
struct MonitorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Show interfaces, addresses and the way out, and one line per change of them.",
        discussion: """
            netwatch monitor
            netwatch monitor --raw --format json
            netwatch monitor --record changes.nwr
            netwatch monitor --replay changes.nwr

            First comes how things are, then one line for each change. What comes and goes within 30 ms is \
            not shown; --raw shows every notification of the kernel as it comes, without judging it.

            --record writes each notification to a file that only this user can read, beside what is \
            printed. --replay prints such a file as --raw would have, and asks the kernel nothing.

            Exit status: 2 when the kernel cannot be asked or the recording cannot be written; 64 for wrong \
            arguments, and for a file to replay that is damaged or from a newer version, which is named with \
            the offset in the file. --replay: 0. Else the command goes on until a signal ends it.
            """
    )

    @Flag(help: "Print each notification of the kernel, decoded.")
    var raw = false

    @Option(help: "Write each notification to this file, which must not exist.")
    var record: String?

    @Flag(help: "With --record: replace a file that exists.")
    var force = false

    @Option(help: "Print a recording instead.")
    var replay: String?

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object per line.")
    var format = OutputFormat.text

    func validate() throws {
        if force, record == nil { throw ValidationError("`--force` goes with `--record`") }
        if replay != nil, record != nil { throw ValidationError("`--replay` excludes `--record`") }
    }

    mutating func run() async throws {
        if let replay { return try Self.replay(replay, format: format) }
        var session = MonitorSession(format: format, isRaw: raw)
        let recorder = try record.map { try NotificationRecorder($0, replacesExisting: force) }
        Printer.exitWhenReaderLeaves()
        try await session.run(recorder)
    }

    /// Prints a recording after checking that it is complete.
    private static func replay(_ path: String, format: OutputFormat) throws(CommandError) {
        do {
            _ = try NetlinkRecording.check(path)
            var reader = try NetlinkRecording.Reader.opening(path)
            var printer = NotificationPrinter(format: format)
            while let record = try reader.next() { printer.print(record) }
        } catch {
            throw CommandError(.usage, "could not replay \(Printer.quoted(path)): \(error)")
        }
    }
}
