internal import Glibc
internal import NetwatchEventLoop

/// Watches what some paths lead to, through symbolic links and across replacements. One thread uses it.
///
/// Directories are watched for their names, since a file that is replaced by `rename(2)` takes a watch of
/// itself along; and the files for their contents, since a write to a file that was mounted over a name, as
/// container engines do with `/etc/resolv.conf`, shows in another directory.
final class FileWatches {
    private static let nameEvents =
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    private static let fileEvents =
        IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW

    private let paths: [String]
    let inotify: Inotify
    /// For each watch the names that matter in its directory; none for a file's.
    private var names: [CInt: Set<String>] = [:]
    /// Why something could not be watched; `nil` when everything is.
    private(set) var failure: SystemError?

    init(_ paths: [String], by inotify: Inotify) {
        self.paths = paths
        self.inotify = inotify
        arm()
    }

    /// Reads what happened. Returns whether any of the paths may lead to something else now.
    func takeChanges() -> Bool {
        let isChanged = inotify.read().contains(where: matters)
        if isChanged { arm() }
        return isChanged
    }

    private func matters(_ event: Inotify.Event) -> Bool {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        // A watch that was ended meanwhile.
        guard let names = names[event.watch] else { return false }
        return event.name.isEmpty || names.contains(event.name)
    }

    /// Watches what is to be watched now, and nothing else.
    ///
    /// What changes while the paths are followed is not watched yet, so they are followed again until
    /// nothing did; a few times at most, since what changes that fast will be heard of.
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
        // Directories first: a file replaced after that is heard of.
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
            // Gone meanwhile, which the next look at the traces shows.
            if error.errno != ENOENT, error.errno != ENOTDIR { failure = failure ?? error }
            return nil
        }
    }
}
