internal import NetwatchEventLoop

// The kernel's state at this moment, including changes that are still held back.
extension MonitorCore {
    /// Looks up addresses now, after processing all pending kernel notifications. Starts no watch.
    ///
    /// - Parameter addresses: The addresses of one host; `nil` for ``PathTarget/general``.
    func verdictNow(on addresses: [IPAddress]?) -> PathStatus.Verdict {
        receiveEvents()
        defer { finish() }
        if interfacesAreStale { readInterfaces() }
        guard let reader = connection?.reader else { return .unknown(.noNetlink) }
        let queried = addresses?.compactMap(\.hostAddress) ?? configuration.generalAddresses
        let options = SparseOptions(PathOptions())
        guard let verdicts = try? reader.lookUp(queried.prefix(Self.maxAddresses).map { ($0, options) })
        else {
            return .unknown(.lookupFailed)
        }
        return TargetVerdict(verdicts.map(\.verdict))?.verdict ?? .unknown(.lookupFailed)
    }

    /// Looks up the routes to a watched target again, ignoring the settle time.
    ///
    /// - Returns: `nil` if the target is not watched.
    func verdictNow(on target: PathTarget) -> (verdict: PathStatus.Verdict, generation: UInt64)? {
        guard let watched = targets[WatchKey(target: target, options: PathOptions())] else { return nil }
        let addresses = watched.slots.map { book.address(at: $0) }
        let verdict = verdictNow(on: addresses.isEmpty ? nil : addresses)
        return (verdict, watched.hold.currentGeneration)
    }

    /// Returns the last known path to each reachable address of a target.
    func paths(to key: WatchKey) -> [NetworkPath] {
        (targets[key]?.slots ?? []).compactMap { book.verdict(at: $0)?.path }
    }

    /// A name server may return any number of addresses, but clients do not try more than this.
    private static let maxAddresses = 16
}
