internal import NetwatchEventLoop
internal import NetworkReachability

/// Passes the snapshots of a monitor to a handler: the current one, and then one for each change. It lasts until it is
/// released.
final class SnapshotWatch: Sendable {
    private let reading: Task<Void, Never>

    /// - Parameter onSnapshot: Called with each snapshot, or with the error that makes netlink unavailable.
    init(
        _ monitor: PathMonitor = .shared,
        onSnapshot: @escaping @Sendable (Result<NetworkSnapshot, CommandError>) -> Void
    ) {
        reading = Task {
            for await snapshot in monitor.snapshots {
                if let failure = monitor.failure {
                    onSnapshot(.failure(CommandError(netlink: failure)))
                } else {
                    onSnapshot(.success(snapshot))
                }
            }
        }
    }

    deinit {
        reading.cancel()
    }
}

extension CommandError {
    /// Creates the error of a command that cannot work without netlink.
    init(netlink error: SystemError) {
        self.init(.unknown, "netlink is unavailable (\(error)), so the state is unknown")
    }
}
