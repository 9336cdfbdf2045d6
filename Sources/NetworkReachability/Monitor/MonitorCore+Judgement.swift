internal import NetwatchEventLoop

// What is true at this moment, whatever is held back.
extension MonitorCore {
    /// Judges addresses anew, after everything that the kernel has announced so far. Nothing is watched for it.
    ///
    /// - Parameter addresses: `nil` for the way out in general.
    func verdictNow(on addresses: [IPAddress]?) -> PathStatus.Verdict {
        receiveEvents()
        defer { finish() }
        if interfacesAreStale { readInterfaces() }
        guard let reader = connection?.reader else { return .unknown(.noNetlink) }
        let asked = addresses?.compactMap(\.ofHost) ?? configuration.generalAddresses
        let options = SparseOptions(PathOptions())
        guard let judgements = try? reader.judge(asked.prefix(Self.mostAsked).map { ($0, options) }) else {
            return .unknown(.lookupFailed)
        }
        return Finding(judgements.map(\.verdict))?.verdict ?? .unknown(.lookupFailed)
    }

    /// Looks the addresses of a watched target up again, whatever is held back.
    ///
    /// - Returns: `nil` when the target is not watched.
    func verdictNow(on target: PathTarget) -> (verdict: PathStatus.Verdict, generation: UInt64)? {
        guard let watched = targets[WatchKey(target: target, options: PathOptions())] else { return nil }
        let addresses = watched.slots.map { book.address(at: $0) }
        let verdict = verdictNow(on: addresses.isEmpty ? nil : addresses)
        return (verdict, watched.hold.currentGeneration)
    }

    /// What was found out last about each address of a target that is reachable.
    func paths(to key: WatchKey) -> [NetworkPath] {
        (targets[key]?.slots ?? []).compactMap { book.verdict(at: $0)?.path }
    }

    /// A name server may give any number of addresses; nobody tries more of them.
    private static let mostAsked = 16
}
