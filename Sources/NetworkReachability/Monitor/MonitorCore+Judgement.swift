internal import NetwatchEventLoop

// What is true at this moment, whatever is held back.
extension MonitorCore {
    /// Judges a target anew, after everything that the kernel has announced so far. Nothing is watched for it,
    /// and no name is looked up.
    func verdictNow(on target: PathTarget) -> PathStatus.Verdict {
        receiveEvents()
        defer { finish() }
        guard let addresses = addresses(of: target) else { return .unknown(.resolving) }
        if interfacesAreStale { readInterfaces() }
        guard let reader = connection?.reader else { return .unknown(.noNetlink) }
        let options = SparseOptions(PathOptions())
        guard let judgements = try? reader.judge(addresses.map { ($0, options) }) else {
            return .unknown(.lookupFailed)
        }
        return Finding(judgements.map(\.verdict))?.verdict ?? .unknown(.lookupFailed)
    }

    private func addresses(of target: PathTarget) -> [IPAddress]? {
        switch target {
        case .general: configuration.generalAddresses
        case .host(let host):
            switch host.kind {
            case .address(let address): [address]
            case .name: nil
            }
        }
    }
}
