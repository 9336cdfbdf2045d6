internal import Glibc

/// What decides what a path leads to: the names on the way that could come to mean something else, and the
/// file in the end.
struct FileTrace: Hashable, Sendable {
    /// A name in a directory.
    struct Name: Hashable, Sendable {
        let directory: String
        let name: String
    }

    /// Every symbolic link on the way, and the name in the end; or the first that does not exist, which
    /// stands in the nearest directory that does.
    ///
    /// Plain directories on the way are left out: they are hardly ever replaced, and noise to watch.
    private(set) var names: [Name] = []
    /// The regular file the path leads to; `nil` when there is none.
    private(set) var file: String?

    /// As many symbolic links as the kernel follows.
    private static let mostLinks = 40

    /// Follows an absolute path, one name at a time.
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
            case .link(let target) where links < Self.mostLinks:
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
        /// Nothing, or what is no configuration: writing to `/dev/null` does not change it.
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

    /// The names of a path, the first one last.
    private static func components(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }.reversed()
    }

    private static func join(_ components: [Substring]) -> String {
        "/" + components.joined(separator: "/")
    }
}
