internal import ClientCore
internal import NetwatchService
internal import OfflineQueue

/// Compares the configuration that the service uses with its files, and these with the files that this command has
/// checked.
struct ConfigurationUse {
    /// What the service reports about its configuration; `nil` if this user has no full access.
    let reported: ControlMessage.Configuration?
    /// The state of the service; `nil` if it is not known.
    let status: ControlMessage.Status?
    /// The main file that this command has checked.
    let checkedPath: String
    /// The faults that this command has reported.
    let reportedFaults: Set<String>

    /// The findings; empty if the service uses the files that this command has checked.
    var findings: [DoctorFinding] {
        guard let reported else { return [lastGood].compactMap(\.self) }
        return [lastGood, otherFile(reported)].compactMap(\.self) + faults(reported)
            + [
                Self.difference(reported.reloadKeys, remedy: "reload the service"),
                Self.difference(reported.restartKeys, remedy: "restart the service"),
                keepingFailure(reported),
            ].compactMap(\.self)
    }

    /// The problem that the service uses its last good configuration.
    private var lastGood: DoctorFinding? {
        guard let kept = reported?.lastGood?.kept ?? status?.lastGood else { return nil }
        let use = "the service uses its last good configuration, of \(kept.rfc3339)"
        guard let lastGood = reported?.lastGood else {
            return .problem(use, advice: "run `netwatch doctor` as root, which prints the reason")
        }
        let faults = lastGood.faults.map(Printer.printable).joined(separator: "; ")
        let ignored = Self.list(lastGood.ignoredKeys)
        return .problem(
            "\(use), because of faults when it started: \(faults)"
                + (ignored.isEmpty ? "" : "; it ignores other changes: \(ignored)"),
            advice: "correct the faults, and reload the service"
        )
    }

    private func otherFile(_ reported: ControlMessage.Configuration) -> DoctorFinding? {
        guard reported.path != checkedPath else { return nil }
        let path = Printer.printable(reported.path)
        return .warning(
            "the service reads `\(path)`, and this command has checked `\(Printer.printable(checkedPath))`",
            advice: "`netwatch doctor --config \(Shell.quoted(path))` checks the file of the service"
        )
    }

    /// The faults that only the service finds, for example because of its variables or of missing permissions.
    private func faults(_ reported: ControlMessage.Configuration) -> [DoctorFinding] {
        reported.faults.filter { !reportedFaults.contains($0) }.map { fault in
            .problem(
                "the service cannot use its configuration files now: \(Printer.printable(fault))",
                advice: "correct the fault; the service keeps its earlier configuration until then"
            )
        }
    }

    private static func difference(_ keys: [String], remedy: String) -> DoctorFinding? {
        guard !keys.isEmpty else { return nil }
        return .warning(
            "the service uses other values than its configuration files have: \(list(keys))",
            advice: remedy
        )
    }

    private func keepingFailure(_ reported: ControlMessage.Configuration) -> DoctorFinding? {
        guard let failure = reported.keepingFailure else { return nil }
        return .warning(
            "the service could not store its configuration as the last good one: \(Printer.printable(failure))",
            advice:
                "check the disk and the state directory; until then, a fault of the files may prevent a start"
        )
    }

    private static func list(_ keys: [String]) -> String { keys.map { "`\($0)`" }.joined(separator: ", ") }
}
