internal import NetwatchEventLoop
internal import Synchronization

/// The points in the code at which a crash is most likely to reveal an error. Crash tests install an action that ends
/// the process at such a point. Without an action, passing a point takes one atomic load.
package enum CrashPoint: String, Hashable, Sendable, CaseIterable {
    /// A body file is synced, but does not have its final name yet.
    case bodySynced
    /// A body file has its final name, but no row refers to it yet.
    case bodyNamed
    /// All statements of a transaction have run.
    case beforeCommit
    /// A transaction is committed, but its callers have not been resumed yet.
    case afterCommit
    /// The claim is on disk, but nothing was sent.
    case claimed
    /// The transfer has started.
    case sending
    /// A response has arrived, but its outcome is not on disk yet.
    case responded
    /// The outcome is on disk, but the body files that are no longer needed still exist.
    case concluded

    private static let isArmed = Atomic(false)
    private static let action = Lock<(@Sendable (CrashPoint) -> Void)?>(nil)

    /// Installs an action that is called at every point; `nil` removes it.
    package static func install(_ action: (@Sendable (CrashPoint) -> Void)?) {
        self.action.withLock { $0 = action }
        isArmed.store(action != nil, ordering: .releasing)
    }

    /// Calls the installed action, if there is one. The code calls this when it passes the point.
    package func reached() {
        guard Self.isArmed.load(ordering: .acquiring) else { return }
        Self.action.withLock { $0 }?(self)
    }
}
