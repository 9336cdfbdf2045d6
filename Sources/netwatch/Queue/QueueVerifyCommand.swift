internal import ArgumentParser
internal import ClientCore
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch queue verify` command.
struct QueueVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check the store: the database, its counters, waiting and dead requests, and their bodies.",
        discussion: """
            netwatch queue verify
            netwatch queue verify --set-aside

            The check changes no request, and the service continues during it. Without a service, the command \
            reads the database's log first. If the log is damaged, the store is not opened, because opening it \
            would drop what cannot be read. Opening the store writes to its files, so they must be writable: copy \
            a backup before you check it, if it must not change.

            The content of every body is checked. Encrypted requests are decrypted. Without their key, only the \
            existence and the size of their bodies are checked.

            --set-aside is for a damaged database, while no service is running. It checks the database with its \
            counters, and not the bodies. If the database is damaged or missing, it moves the store to a new directory within the \
            queue's directory, exports what can be read, and prints the path of the export. Nothing is \
            deleted. The next start of the service then creates an empty store, and `netwatch queue import` \
            adds the exported requests. If the database is not damaged, nothing is moved, even if bodies are \
            missing or damaged.

            Exit status: 0 sound; 1 not sound, for example a lost or damaged request, or requests that wait for each \
            other; 2 the check failed, or \
            requests could not be checked without their encryption key; 77 permission denied; 78 the database \
            is damaged or missing, or belongs to another program or a newer netwatch. With --set-aside: 0 the database is \
            not damaged, or it was moved and all requests were exported; 1 it was moved, and requests are \
            lost; 2 the check, the move or the export failed; 77 and 78 the same, except that a damaged or missing \
            database does not cause 78.
            """
    )

    @Flag(help: "If the database is damaged, move the store to a new directory, and export what can be read.")
    var setAside = false

    @Option(name: .shortAndLong, help: "The output format: text, or json (a single JSON object).")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if setAside, format == .json {
            throw ValidationError("`--set-aside` cannot be combined with `--format json`")
        }
    }

    mutating func run() async throws {
        if setAside { return try await setAsideStore() }
        try await checkRemainingLog()
        let found = try await queue.withQueue {
            // A check reads every byte of the store.
            try await $0.get(
                "/v1/queue/verify",
                extra: ServiceRequest.longestCall,
                as: ControlMessage.Verification.self
            )
        }
        show(found)
        if found.isDatabaseDamaged {
            throw ExitStatus.unusableStore.exitCode
        }
        if found.damaged { throw ExitStatus.no.exitCode }
        if !found.sound { throw ExitStatus.unknown.exitCode }
    }

    /// Checks the log before the queue is opened. Opening would drop the unreadable part of the log and change the
    /// files.
    private func checkRemainingLog() async throws {
        guard let directory = try queue.directoryIfNoServiceRuns() else { return }
        try StoreDirectory.requireOwn(directory)
        try StoreDirectory.requireDatabase(in: directory)
        do {
            try await OfflineQueue.checkLeftoverLog(directory: directory)
        } catch let error as QueueError {
            throw CommandError(opening: error)
        }
    }

    private func show(_ found: ControlMessage.Verification) {
        if format == .json { return Printer.json(found, with: ControlMessage.encoder) }
        for finding in found.findings {
            Printer.line("\(finding.kind): \(finding.subject): \(finding.message)")
        }
        if found.has(.dependencyCycle) {
            Printer.note(
                "requests that wait for each other are not sent; `netwatch queue retry ID` sends one of them without "
                    + "waiting"
            )
        }
        let unlisted = found.findingCount - found.findings.count
        if unlisted > 0 { Printer.note("and \(unlisted) more findings") }
        let requests = CountText.format(found.requests, "request")
        let files = CountText.format(found.files, "file")
        // If the database is damaged, the check may end before its first request.
        let isUnchecked = found.isDatabaseDamaged && found.requests == 0
        let extent = isUnchecked ? "requests could not be checked" : "checked \(requests) and \(files)"
        let verdict = found.damaged ? "not sound" : found.sound ? "sound" : "no damage found"
        Printer.note("\(verdict): \(extent)")
        if found.isDatabaseDamaged {
            Printer.note(
                "stop the service and run `netwatch queue verify --set-aside`: it moves the database to a new "
                    + "directory and exports the readable requests"
            )
        }
        guard let unchecked = found.unchecked else { return }
        let encrypted = CountText.format(unchecked, "encrypted request")
        Printer.warning(
            "\(encrypted) could not be checked without the key, except for the existence and the size of the body; "
                + "`--encryption-key` names the file of the key"
        )
    }

    // MARK: Setting aside

    private func setAsideStore() async throws {
        let directory = try queue.directoryWithoutService()
        try StoreDirectory.requireOwn(directory)
        Printer.note(
            "checking the database in `\(directory)`; if it is damaged, it is moved to `damaged-…` there; nothing is "
                + "deleted"
        )
        let moved: SetAsideStore?
        do {
            moved = try await OfflineQueue.setAside(
                directory: directory,
                encryptionKeyFile: queue.keyFile
            )
        } catch let error as QueueError where error.code == .alreadyOwned {
            throw CommandError(opening: error).with(hint: Self.stopHint(directory, owner: error.ownerPID))
        } catch let error as QueueError {
            throw CommandError(opening: error)
        }
        guard let moved else {
            return Printer.note(
                "the database is not damaged, so nothing was moved; `verify` without `--set-aside` checks the bodies"
            )
        }
        try report(moved)
    }

    /// Returns how to stop the process that has the store open. The service must not run while a store is moved.
    private static func stopHint(_ directory: String, owner: Int32?) -> String {
        let isUnit = SystemUnit.isInstalled && directory == ServicePaths.systemState
        let process = owner.map { "process \($0)" } ?? "the process that has it open"
        let stop = isUnit ? "stop the service with `systemctl stop netwatch`" : "stop \(process)"
        return "\(stop), and repeat the command; `verify` without `--set-aside` also checks a running service"
    }

    private func report(_ moved: SetAsideStore) throws {
        let salvage = moved.salvage
        Printer.note(Printer.printable("damaged: \(moved.reason)"))
        Printer.note("moved to `\(moved.directory)`")
        for request in salvage.lost {
            Printer.warning(Printer.printable("`\(request.id)` could not be exported: \(request.reason)"))
        }
        if salvage.lostCount > salvage.lost.count {
            Printer.warning("\(salvage.lostCount - salvage.lost.count) more requests could not be exported")
        }
        for gap in salvage.gaps {
            Printer.warning("no request \(Self.extent(of: gap)) could be read")
        }
        for note in salvage.notes { Printer.warning(Printer.printable(note)) }
        if let counted = salvage.counted, counted > salvage.waiting {
            Printer.warning("the store counted \(counted) waiting requests; \(salvage.waiting) were exported")
        }
        if !salvage.isWhole {
            Printer.note(
                "a backup may contain the other requests; an import of it also repeats what was delivered since then"
            )
        }
        Printer.note(
            "exported \(salvage.waiting) waiting and \(salvage.dead) dead requests; before the service starts, import "
                + "them with"
        )
        let command = Self.importCommand(
            for: salvage.path,
            stateDirectory: queue.namedDirectory,
            encryptionKey: queue.keyFile
        )
        Printer.note("`\(command)`")
        Printer.data(salvage.path)
        if !salvage.isWhole { throw ExitStatus.no.exitCode }
    }

    /// Returns the positions that a gap covers, as a part of a sentence. The end is unknown if no later request could
    /// be read.
    private static func extent(of gap: ClosedRange<Int64>) -> String {
        gap.upperBound == .max
            ? "from position \(gap.lowerBound) on"
            : "between positions \(gap.lowerBound) and \(gap.upperBound)"
    }

    /// Returns the shell command that imports an export. Without the key, the import would store the requests of an
    /// encrypted queue unencrypted.
    ///
    /// - Parameters:
    ///   - stateDirectory: The directory that the user has named; `nil` for the default.
    ///   - encryptionKey: The file of keys that the user has named; `nil` if there is none.
    static func importCommand(
        for export: String,
        stateDirectory: String?,
        encryptionKey: String? = nil
    ) -> String {
        var words = ["netwatch queue import --keep-submitters"]
        if let stateDirectory { words += ["--state-dir", Shell.quoted(stateDirectory)] }
        if let encryptionKey { words += ["--encryption-key", Shell.quoted(encryptionKey)] }
        return (words + [Shell.quoted(export)]).joined(separator: " ")
    }
}

extension ControlMessage.Verification {
    fileprivate var isDatabaseDamaged: Bool { has(.database) }

    fileprivate func has(_ kind: QueueVerification.Finding.Kind) -> Bool {
        findings.contains { $0.kind == kind.rawValue }
    }
}
