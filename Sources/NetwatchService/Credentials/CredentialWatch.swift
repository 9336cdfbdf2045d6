package import OfflineQueue

/// Releases requests that are held because of their credential when its file changes.
///
/// The files are examined at a fixed interval. inotify(7) would report fewer changes: it misses files behind symbolic
/// links, on network file systems, and in a directory that was replaced.
package struct CredentialWatch: Sendable {
    /// The time between two examinations. It is short enough for a person who waits for the effect of a change.
    package static let interval: Duration = .seconds(2)

    private let directory: CredentialDirectory
    private let interval: Duration
    private var versions: [String: [CredentialDirectory.Version?]]

    /// Records the current versions of the files. Later changes are reported.
    package init(_ directory: CredentialDirectory, interval: Duration = Self.interval) async {
        self.directory = directory
        self.interval = interval
        versions = await directory.versions()
    }

    /// Reports changes to the queue until the task is cancelled, or the queue's store fails.
    package consuming func run(for queue: OfflineQueue) async {
        var watch = self
        while (try? await Task.sleep(for: watch.interval, clock: .continuous)) != nil {
            let changed = await watch.changes()
            guard !changed.isEmpty else { continue }
            do { try await queue.credentialsChanged(changed) } catch { return }
        }
    }

    /// Returns the names of the files that were added, changed or removed since the last call.
    private mutating func changes() async -> Set<String> {
        let current = await directory.versions()
        defer { versions = current }
        return Set(versions.keys).union(current.keys).filter { versions[$0] != current[$0] }
    }
}
