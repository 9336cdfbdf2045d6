internal import Glibc
internal import NetwatchService
internal import OfflineQueue

/// The check of the queue's store: through the service if it runs, otherwise in the store's directory.
struct StoreCheck {
    let queue: QueueOptions
    /// The limits of the queue, for a store without a service.
    let limits: QueueLimits
    /// What the service reports; `nil` if the path of its socket is not valid.
    let service: ServiceReading?

    func findings() async -> [DoctorFinding] {
        do throws(CommandError) {
            guard let directory = try queue.directoryIfNoServiceRuns() else {
                return try findingsByService()
            }
            return try await findings(in: directory)
        } catch {
            return [Self.finding(error)]
        }
    }

    private func findingsByService() throws(CommandError) -> [DoctorFinding] {
        guard let statistics = service?.summary.statistics else {
            if service?.summary.state == .notRunning, queue.service.isSocketNamed {
                return [
                    .problem(
                        "not checked: the service does not run, and the directory of its queue is not known",
                        advice: "`--state-dir` names the directory"
                    )
                ]
            }
            // Earlier checks have reported a service that does not run, is busy, refuses this user, or cannot be
            // queried.
            guard let failure = service?.summary.failure, !Self.unexamined.contains(failure.status),
                CommandError.unusableTransport == nil
            else { return [] }
            throw failure
        }
        let check = service?.storeCheck
        let damage = check?.scan.map { Self.findings(on: $0) } ?? []
        let others = [
            Self.fullDisk(statistics), Self.pause(statistics), Self.unsolved(statistics.counts),
        ].compactMap(\.self)
        return [use(statistics, check)] + damage + others
    }

    /// Returns the finding on the database that the service uses.
    private func use(
        _ statistics: QueueStatistics,
        _ check: ControlMessage.StoreCheck?
    ) -> DoctorFinding {
        if let damage = check?.damage {
            return .problem(
                "the database that the service uses is damaged: \(Printer.printable(damage))",
                advice: Self.setAsideAdvice
            )
        }
        let sizes = Self.sizes(
            database: statistics.databaseBytes,
            free: statistics.isDiskFull ? nil : statistics.freeBytes
        )
        let extent =
            check.map { $0.complete ? "no damage; " : "no damage in the part that was checked; " } ?? ""
        let scan = check?.scan?.completed.map { "last scan \($0.rfc3339); " } ?? ""
        return .ok(
            "in use by the service; \(sizes); \(extent)\(scan)`netwatch queue verify` checks every request"
        )
    }

    private static let setAsideAdvice =
        "stop the service; then `netwatch queue verify --set-aside` moves the database away, saves the readable requests, "
        + "and prints how to import them before the start"

    /// Returns the problems that scans of the service have found.
    static func findings(on scan: ControlMessage.Scan) -> [DoctorFinding] {
        let listed = scan.findings ?? []
        let problems = listed.map { finding in
            DoctorFinding.problem(
                Printer.printable("a scan has found \(finding.kind): \(finding.subject): \(finding.message)"),
                advice: advice(on: finding)
            )
        }
        let rest = scan.findingCount - listed.count
        guard rest > 0 else { return problems }
        let more = CountText.format(rest, "other problem")
        return problems + [.problem("scans have found \(more)", advice: "`netwatch queue verify` lists all")]
    }

    private static func advice(on finding: ControlMessage.Finding) -> String {
        switch QueueVerification.Finding.Kind(rawValue: finding.kind) {
        case .database: setAsideAdvice
        case .databaseUnreadable, .bodyUnreadable:
            "check the disk (`dmesg`); `netwatch queue verify` reads the part again"
        default:
            "submit the request again with another id, and cancel this one; `netwatch queue verify` reads all bodies "
                + "again"
        }
    }

    /// Returns the problem that the disk has only its reserve left; `nil` if new requests are accepted.
    private static func fullDisk(_ statistics: QueueStatistics) -> DoctorFinding? {
        guard statistics.isDiskFull else { return nil }
        return fullDisk("the disk", free: statistics.freeBytes, reserve: statistics.diskReserve)
    }

    /// - Parameter reserve: The reserve in use, which may be less than the configured one on a small file system.
    private static func fullDisk(_ disk: String, free: Int64, reserve: Int64) -> DoctorFinding {
        .problem(
            "\(disk) is full, so the service refuses new requests, large ones first: \(ByteText.format(free)) are free, "
                + "and \(ByteText.format(reserve)) must stay free for the requests that it has accepted",
            advice: "free some space, or set `queue.limits.disk-reserve` to less than what is free"
        )
    }

    /// Returns the warning about a paused queue; `nil` if the queue is not paused.
    private static func pause(_ statistics: QueueStatistics) -> DoctorFinding? {
        guard statistics.isPaused else { return nil }
        return .warning(
            "the queue is paused, so it sends nothing",
            advice: "`netwatch queue resume` ends the pause"
        )
    }

    /// Returns the warning about requests that the queue does not send by itself; `nil` if there are none.
    private static func unsolved(_ counts: QueueCounts) -> DoctorFinding? {
        let parts = counts.words(of: [.held, .dead])
        guard !parts.isEmpty else { return nil }
        return .warning(
            "requests in the queue: \(parts.joined(separator: ", "))",
            advice: "`netwatch queue list --state held,dead` prints why"
        )
    }

    private func findings(in directory: String) async throws(CommandError) -> [DoctorFinding] {
        // Read first, because root becomes the owner of the directory afterwards.
        let mode = Self.openMode(of: directory)
        try StoreDirectory.requireOwn(directory)
        try StoreDirectory.requireDatabase(in: directory)
        let examination: StoreExamination
        do {
            examination = try await OfflineQueue.examineStore(
                directory: directory,
                limits: limits,
                encryptionKeyFile: queue.keyFile
            )
        } catch let error as QueueError {
            if error.code == .alreadyOwned { return [.ok(error.message)] }
            let failure = CommandError(opening: error)
            guard error.code == .storeUnavailable else { throw failure }
            throw failure.with(
                hint: "check the disk, and use chown(1) to give all files in `\(directory)` to its owner"
            )
        } catch {
            throw CommandError(.unknown, "\(error)")
        }
        let open = mode.map { Self.finding(mode: $0, of: directory) }
        return [finding(examination, in: directory), open].compactMap(\.self)
    }

    private func finding(_ store: StoreExamination, in directory: String) -> DoctorFinding {
        if let damage = store.damage {
            let command = StoreDirectory.setAsideCommand(for: directory)
            return .problem(
                "the store in `\(directory)` is damaged: \(damage)",
                advice: "`\(command)` moves it away and saves the readable requests"
            )
        }
        if store.isDiskFull {
            let (free, reserve) = (store.freeBytes, store.diskReserve)
            return Self.fullDisk("the disk of `\(directory)`", free: free, reserve: reserve)
        }
        let sizes = Self.sizes(database: store.databaseBytes, free: store.freeBytes)
        return .ok("no damage in `\(directory)`; \(sizes)")
    }

    /// - Parameter free: The free space of the disk; `nil` if another finding has it.
    private static func sizes(database: Int64, free: Int64?) -> String {
        "database \(ByteText.format(database))" + (free.map { ", free disk \(ByteText.format($0))" } ?? "")
    }

    /// Returns the mode of a directory that other users can access; `nil` for a private one.
    private static func openMode(of directory: String) -> mode_t? {
        var status = stat()
        guard stat(directory, &status) == 0, status.st_mode & 0o077 != 0 else { return nil }
        return status.st_mode & 0o7777
    }

    private static func finding(mode: mode_t, of directory: String) -> DoctorFinding {
        .warning(
            "other users can access `\(directory)` (mode 0\(String(mode, radix: 8)))",
            advice: "`netwatch serve` changes the mode to 0700 when it starts"
        )
    }

    /// Returns the finding for a store that cannot be examined. Without a queue, or without the permission to read it,
    /// nothing is known to be wrong.
    private static func finding(_ error: CommandError) -> DoctorFinding {
        unexamined.contains(error.status) ? .warning(error.message, advice: error.hint) : .problem(error)
    }

    /// The exit statuses of errors after which nothing is known about the store.
    private static let unexamined: [ExitStatus] = [.usage, .noPermission, .unavailable, .tryAgain]
}
