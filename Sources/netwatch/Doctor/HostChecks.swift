internal import NetworkReachability

/// The checks of hosts, which look up their names and connect to them.
enum HostChecks {
    static func findings(on hosts: [NetworkHost], _ choice: ProbeChoice) async -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        for host in hosts { findings.append(await finding(on: .host(host), choice)) }
        return findings
    }

    private static func finding(on target: PathTarget, _ choice: ProbeChoice) async -> DoctorFinding {
        do throws(CommandError) {
            let probe = try choice.probe(for: target)
            guard let status = await firstResult(of: target, by: probe) else {
                return .problem("\(target.subject) could not be checked")
            }
            let text = "\(target.subject) is \(status.stateText) (\(status.summary(separator: ", ")))"
            return status.reachability == .reachable ? .ok(text) : .problem(text)
        } catch {
            return .problem(error)
        }
    }

    /// Returns the first status that is a result.
    ///
    /// - Parameter probe: The probe to send; `nil` for none.
    private static func firstResult(
        of target: PathTarget,
        by probe: (any Probe)?
    ) async -> ValidatedStatus? {
        let (statuses, continuation) = AsyncStream.makeStream(of: ValidatedStatus.self)
        let watch: AnyObject
        if let probe {
            watch = PathValidator(target: target, probe: probe, interval: nil) { continuation.yield($0) }
        } else {
            watch = PathMonitor.shared.watch(target) {
                continuation.yield(ValidatedStatus(status: $0, probe: nil))
            }
        }
        defer { withExtendedLifetime(watch) {} }
        return await statuses.first { probe == nil || $0.probe != nil || !$0.status.isReachable }
    }
}
