/// The failures that an accepted request survives.
public enum Durability: String, Hashable, Sendable, CaseIterable {
    /// A process crash and a power loss: the request was synced to disk.
    case full
    /// A process crash. A power loss may lose the latest requests. Faster where syncing is slow.
    case normal
}
