/// The failures that an accepted request survives.
public enum Durability: String, Hashable, Sendable, CaseIterable {
    /// The request survives a process crash and a power loss, because it was synced to disk.
    case full
    /// The request survives a process crash. A power loss may lose the latest requests. Enqueuing is faster on a disk
    /// that syncs slowly.
    case normal
}
