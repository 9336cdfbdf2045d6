/// The failures that an accepted request survives.
public enum Durability: String, Hashable, Sendable, CaseIterable {
    /// Survives a process crash and a power loss, because the request was synced to disk.
    case full
    /// Survives a process crash. A power loss may lose the latest requests. Faster where syncing is slow.
    case normal
}
