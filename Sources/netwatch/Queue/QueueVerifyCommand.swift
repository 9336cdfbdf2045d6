internal import ArgumentParser
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch queue verify` command.
struct QueueVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Look through all of the store: its structure, its numbers, every request and every body.",
        discussion: """
            netwatch queue verify
            netwatch queue verify --set-aside

            It changes nothing, and nobody waits for it. Without a service the log of the database is read first; \
            when it is damaged nothing is opened, because opening drops what cannot be read. --set-aside is for a store that is damaged: it is \
            moved to a directory of its own within the queue's, what can be read of it is exported there, and \
            the name of that file is printed. Nothing is deleted, and the next start begins an empty store. \
            No service may run meanwhile.

            Exit status: 0 sound, 1 something costs a request, 2 it could not be looked through or moved, 77 \
            not permitted, 78 damaged, another program's or a newer netwatch's; with --set-aside 0 sound, or \
            moved with everything saved, 1 moved and something is lost.
            """
    )

    @Flag(help: "Move a damaged store away, and save what can be read.")
    var setAside = false

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object.")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if setAside, format == .json { throw ValidationError("`--set-aside` excludes `--format json`") }
    }

    mutating func run() async throws {
        if setAside { return try await moveAway() }
        try await checkLeftLog()
        let found = try await queue.withQueue {
            try await $0.get("/v1/queue/verify", extra: Self.longest, as: ControlMessage.Verification.self)
        }
        show(found)
        if found.findings.contains(where: { $0.kind == QueueVerification.Finding.Kind.database.rawValue }) {
            throw ExitStatus.unusableStore.exitCode
        }
        if !found.sound { throw ExitStatus.no.exitCode }
    }

    /// Checks the log before the queue is opened, because opening drops the unreadable part of the log and changes the
    /// files.
    private func checkLeftLog() async throws {
        guard let directory = try queue.directoryIfNoServiceRuns() else { return }
        try StoreDirectory.requireOwn(directory)
        do {
            try await OfflineQueue.checkLeftoverLog(directory: directory)
        } catch let error as QueueError {
            throw CommandError(opening: error)
        }
    }

    /// Long enough to read every byte of a gigabyte on a slow card.
    private static let longest: Duration = .seconds(86_400)

    private func show(_ found: ControlMessage.Verification) {
        if format == .json { return Printer.json(found, with: ControlMessage.encoder) }
        for finding in found.findings {
            Printer.line("\(finding.kind): \(finding.subject): \(finding.message)")
        }
        let untold = found.findingCount - found.findings.count
        if untold > 0 { Printer.note("and \(untold) more") }
        let extent = "\(found.requests) requests and \(found.files) files looked through"
        Printer.note("\(found.sound ? "sound" : "not sound"): \(extent)")
    }

    // MARK: Setting aside

    private func moveAway() async throws {
        let directory = try queue.directoryWithoutService()
        try StoreDirectory.requireOwn(directory)
        Printer.note(
            "looking through `\(directory)`: a damaged store is moved to `damaged-…` there, and nothing is deleted"
        )
        let moved: SetAsideStore?
        do {
            moved = try await OfflineQueue.setAside(directory: directory)
        } catch let error as QueueError {
            throw CommandError(opening: error)
        }
        guard let moved else {
            return Printer.note("the database is sound and was left alone; bodies are for `verify` alone")
        }
        try tell(of: moved)
    }

    private func tell(of moved: SetAsideStore) throws {
        let salvage = moved.salvage
        Printer.note(Printer.printable("damaged: \(moved.reason)"))
        Printer.note("moved to `\(moved.directory)`")
        for request in salvage.lost {
            Printer.warning(Printer.printable("`\(request.id)` cannot be saved: \(request.reason)"))
        }
        if salvage.lostCount > salvage.lost.count {
            Printer.warning("and \(salvage.lostCount - salvage.lost.count) more")
        }
        for gap in salvage.gaps {
            Printer.warning("nothing can be read between places \(gap.lowerBound) and \(gap.upperBound)")
        }
        for note in salvage.notes { Printer.warning(Printer.printable(note)) }
        if let counted = salvage.counted, counted > salvage.waiting {
            Printer.warning("\(counted) waited by the store's own count, \(salvage.waiting) are saved")
        }
        if !salvage.isWhole {
            Printer.note("`sqlite3 \(moved.directory)/queue.sqlite .recover` may find more")
        }
        Printer.note("saved \(salvage.waiting) that waited and \(salvage.dead) that were given up, for")
        Printer.note("`netwatch queue import \(salvage.path)`")
        Printer.data(salvage.path)
        if !salvage.isWhole { throw ExitStatus.no.exitCode }
    }
}
