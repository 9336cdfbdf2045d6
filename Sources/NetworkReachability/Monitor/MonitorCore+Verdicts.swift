internal import NetwatchEventLoop

// Answers questions about the kernel's current state. The answers may report changes before the watches do, because
// some changes are held back from watches.
extension MonitorCore {
    /// Processes all pending kernel notifications, and then looks up the addresses. Does not start a watch.
    ///
    /// - Parameters:
    ///   - addresses: The addresses of one host. Only the first 64 are used. `nil` for ``PathTarget/general``.
    ///   - port: The TCP port to connect to. Default: `nil`, unknown.
    func verdictNow(on addresses: [IPAddress]?, port: UInt16? = nil) -> PathStatus.Verdict {
        receiveEvents()
        defer { finish() }
        if !staleInterfaces.isEmpty { readInterfaces() }
        guard let reader = connection?.reader else { return .unknown(.noNetlink) }
        let queried = addresses?.compactMap(\.hostAddress) ?? configuration.generalAddresses
        var options = PathOptions()
        options.port = port
        let sparse = SparseOptions(options)
        guard let verdicts = try? reader.lookUp(queried.prefix(Self.maxAddresses).map { ($0, sparse) })
        else {
            return .unknown(.lookupFailed)
        }
        return TargetVerdict(verdicts.map(\.verdict))?.verdict ?? .unknown(.lookupFailed)
    }

    /// Looks up the known addresses of a watched target again.
    ///
    /// For a name without known addresses this is the verdict on ``PathTarget/general``.
    ///
    /// - Parameter port: The port of the watch; `nil` if it has none.
    /// - Returns: The verdict, and the generation that a status would have now; `nil` if the target is not watched with
    ///   this port and otherwise the default options.
    func verdictNow(
        on target: PathTarget,
        port: UInt16? = nil
    ) -> (verdict: PathStatus.Verdict, generation: UInt64)? {
        var options = PathOptions()
        options.port = port
        guard let watched = targets[WatchKey(target: target, options: options)] else { return nil }
        let addresses = watched.slots.map { self.addresses.book.address(at: $0) }
        let verdict = addresses.isEmpty ? verdictNow(on: nil) : verdictNow(on: addresses, port: port)
        return (verdict, watched.hold.currentGeneration)
    }

    /// Returns the last known path to each reachable address of a target, in the resolver's order.
    func paths(to key: WatchKey) -> [NetworkPath] {
        (targets[key]?.slots ?? []).compactMap { addresses.book.verdict(at: $0)?.path }
    }

    /// The maximum number of addresses that are looked up. A client tries as many.
    private static let maxAddresses = ResolverTimes.maximumAddresses
}
