internal import Glibc
internal import NetwatchEventLoop

/// Watches what some paths resolve to, through symbolic links and across replacements. Used by one thread.
///
/// Directories are watched for their entries, because a watch on a file stays with the old file when `rename(2)`
/// replaces it. Files are watched for their contents, because a write to a bind-mounted file does not appear in the
/// directory. Container engines mount `/etc/resolv.conf` like that.
final class FileWatches {
    private static let nameEvents =
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    private static let fileEvents =
        IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW

    private let paths: [String]
    let inotify: Inotify
    /// The relevant names in the directory of each watch; empty for a watch on a file.
    private var names: [CInt: Set<String>] = [:]
    /// Why something could not be watched; `nil` if everything is watched.
    private(set) var failure: SystemError?

    init(_ paths: [String], by inotify: Inotify) {
        self.paths = paths
        self.inotify = inotify
        arm()
    }

    /// Reads the pending events. Returns whether any of the paths may resolve to something else now.
    func takeChanges() -> Bool {
        let isChanged = inotify.read().contains(where: matters)
        if isChanged { arm() }
        return isChanged
    }

    private func matters(_ event: Inotify.Event) -> Bool {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        // Without an entry, the watch was removed in the meantime.
        guard let names = names[event.watch] else { return false }
        return event.name.isEmpty || names.contains(event.name)
    }

    /// Updates the watches to match what the paths resolve to now.
    ///
    /// A change made while the paths are resolved is not watched yet, so they are resolved again until the result is
    /// stable. Five attempts are enough: a path that changes this fast causes further events.
    private func arm() {
        var traces = paths.map(FileTrace.init)
        for _ in 0..<5 {
            let before = Set(names.keys)
            names = watch(traces)
            for stale in before.subtracting(names.keys) { inotify.end(stale) }
            let again = paths.map(FileTrace.init)
            if again == traces { return }
            traces = again
        }
    }

    private func watch(_ traces: [FileTrace]) -> [CInt: Set<String>] {
        failure = nil
        var watches: [CInt: Set<String>] = [:]
        // Directories first: a file that is replaced after that causes an event.
        for entry in traces.flatMap(\.names) {
            guard let watch = watch(entry.directory, for: Self.nameEvents) else { continue }
            watches[watch, default: []].insert(entry.name)
        }
        for file in traces.compactMap(\.file) {
            guard let watch = watch(file, for: Self.fileEvents) else { continue }
            watches[watch, default: []] = []
        }
        return watches
    }

    private func watch(_ path: String, for events: CInt) -> CInt? {
        do throws(SystemError) {
            return try inotify.watch(path, for: events)
        } catch {
            // The file or directory was removed in the meantime. The next trace will show it.
            if error.errno != ENOENT, error.errno != ENOTDIR { failure = failure ?? error }
            return nil
        }
    }
}
