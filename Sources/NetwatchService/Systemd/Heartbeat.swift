/// Reports to the service manager's watchdog that all parts of the service make progress. If one part hangs, the next
/// report is late, and the service manager restarts the service.
struct Heartbeat: Sendable {
    /// The time between two reports.
    let interval: Duration
    /// Each function calls one part of the service, and returns when that part has responded.
    let parts: [@Sendable () async -> Void]
    let report: @Sendable () -> Void

    /// Reports until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            for part in parts { await part() }
            report()
            try? await Task.sleep(for: interval)
        }
    }
}
