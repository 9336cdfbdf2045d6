internal import Synchronization

/// The places at which a crash is worst. A test installs an action that ends the process there; else passing
/// one costs an atomic load.
package enum CrashPoint: String, Hashable, Sendable, CaseIterable {
    /// A body's file is synced, but does not have its name yet.
    case bodySynced
    /// A body's file has its name, and no row knows of it yet.
    case bodyNamed
    case beforeCommit
    case afterCommit
    /// An attempt's intent is on the disk, nothing was sent.
    case claimed
    /// The transfer was begun.
    case sending
    /// An answer came, and nobody has written so.
    case answered
    /// The outcome is on the disk; files that it freed are still there.
    case concluded

    private static let isArmed = Atomic(false)
    private static let action = Mutex<(@Sendable (CrashPoint) -> Void)?>(nil)

    /// Calls an action at every point from now on; `nil` for none.
    package static func install(_ action: (@Sendable (CrashPoint) -> Void)?) {
        self.action.withLock { $0 = action }
        isArmed.store(action != nil, ordering: .releasing)
    }

    package func reached() {
        guard Self.isArmed.load(ordering: .acquiring) else { return }
        Self.action.withLock { $0 }?(self)
    }
}
