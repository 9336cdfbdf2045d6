internal import Glibc
internal import NetwatchEventLoop

/// Watches paths for changes of the file or of its content, even through symbolic links. Used by one thread.
///
/// Two kinds of inotify watches are needed:
/// - on directories, for their entries. When `rename(2)` replaces a file, a watch on the file would stay with the old
///   file.
/// - on files, for their contents. A write to a bind-mounted file causes no event in the directory. Container engines
///   bind-mount `/etc/resolv.conf`.
final class FileWatches {
    private static let nameEvents =
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    private static let fileEvents =
        IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW

    private let paths: [String]
    let inotify: Inotify
    /// The relevant names in the directory of each inotify watch; empty for a watch on a file.
    private var names: [CInt: Set<String>] = [:]
    /// The first error that prevented a watch; `nil` if everything is watched.
    private(set) var failure: SystemError?

    init(_ paths: [String], by inotify: Inotify) {
        self.paths = paths
        self.inotify = inotify
        arm()
    }

    /// Reads the pending events, and returns whether any of the files may have changed.
    func takeChanges() -> Bool {
        let isChanged = inotify.read().contains(where: matters)
        if isChanged { arm() }
        return isChanged
    }

    private func matters(_ event: Inotify.Event) -> Bool {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        // An event of a watch that has been removed.
        guard let names = names[event.watch] else { return false }
        return event.name.isEmpty || names.contains(event.name)
    }

    /// Updates the watches to match the files to which the paths resolve now.
    ///
    /// A change between resolving a path and watching it causes no event. So the paths are resolved again after that,
    /// until two results are equal. Five attempts are enough, because a path that still changes causes further events.
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
        // Directories are watched first, so that the replacement of a file from now on causes an event.
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

/// The file to which a path resolves, and the directory entries whose replacement could change the result.
struct FileTrace: Hashable, Sendable {
    /// A directory entry: the path of the directory and a name in it.
    struct Name: Hashable, Sendable {
        let directory: String
        let name: String
    }

    /// The symbolic links that are followed, and then the last entry. The last entry is the file itself, or the first
    /// entry that does not exist.
    ///
    /// The directories of the path are omitted, because they are hardly ever replaced and their events are mostly
    /// irrelevant.
    private(set) var names: [Name] = []
    /// The path of the regular file, without symbolic links; `nil` if the path resolves to none.
    private(set) var file: String?

    /// The maximum number of symbolic links that are followed, as in the kernel.
    private static let maxLinks = 40

    /// Resolves an absolute path, one component at a time.
    init(following path: String) {
        var resolved: [Substring] = []
        var rest = Self.components(path)
        var links = 0
        while let name = rest.popLast() {
            if name == ".." {
                _ = resolved.popLast()
                continue
            }
            let entry = Name(directory: Self.join(resolved), name: String(name))
            switch Kind(of: Self.join(resolved + [name])) {
            case .link(let target) where links < Self.maxLinks:
                links += 1
                names.append(entry)
                if target.hasPrefix("/") { resolved = [] }
                rest += Self.components(target)
            case .directory where !rest.isEmpty:
                resolved.append(name)
            case .file where rest.isEmpty:
                names.append(entry)
                file = Self.join(resolved + [name])
            default:
                names.append(entry)
                return
            }
        }
    }

    private enum Kind {
        case link(to: String)
        case directory
        case file
        /// Any other kind of file, or no file at all. An example is `/dev/null`, whose content a write does not change.
        case other

        init(of path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else {
                self = .other
                return
            }
            switch status.st_mode & S_IFMT {
            case S_IFLNK: self = FileTrace.target(of: path).map(Kind.link) ?? .other
            case S_IFDIR: self = .directory
            case S_IFREG: self = .file
            default: self = .other
            }
        }
    }

    private static func target(of link: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }

    /// Returns the components of a path in reverse order.
    private static func components(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }.reversed()
    }

    private static func join(_ components: [Substring]) -> String {
        "/" + components.joined(separator: "/")
    }
}
