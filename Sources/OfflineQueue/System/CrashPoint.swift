internal import Synchronization

/// The points at which a crash is most harmful. A test installs an action that ends the process there. Otherwise
/// passing a point takes one atomic load.
package enum CrashPoint: String, Hashable, Sendable, CaseIterable {
    /// A body file is synced, but not yet renamed to its final name.
    case bodySynced
    /// A body file has its final name, but no row refers to it yet.
    case bodyNamed
    case beforeCommit
    case afterCommit
    /// The start of an attempt is recorded on disk; nothing was sent.
    case claimed
    /// The transfer has started.
    case sending
    /// A response was received, but is not recorded yet.
    case answered
    /// The outcome is on disk; the files that it freed still exist.
    case concluded

    private static let isArmed = Atomic(false)
    private static let action = Mutex<(@Sendable (CrashPoint) -> Void)?>(nil)

    /// Installs an action that is called at every point from now on; `nil` removes it.
    package static func install(_ action: (@Sendable (CrashPoint) -> Void)?) {
        self.action.withLock { $0 = action }
        isArmed.store(action != nil, ordering: .releasing)
    }

    package func reached() {
        guard Self.isArmed.load(ordering: .acquiring) else { return }
        Self.action.withLock { $0 }?(self)
    }
}
