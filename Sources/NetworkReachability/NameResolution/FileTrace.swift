internal import Glibc

/// What a path resolves to: the file, and the directory entries on the way that could change.
struct FileTrace: Hashable, Sendable {
    /// A directory entry.
    struct Name: Hashable, Sendable {
        let directory: String
        let name: String
    }

    /// All symbolic links on the way, and the last entry. If an entry does not exist, it is the last one, in the
    /// nearest directory that exists.
    ///
    /// Plain directories on the way are omitted: they are hardly ever replaced, and watching them produces noise.
    private(set) var names: [Name] = []
    /// The regular file that the path resolves to; `nil` if there is none.
    private(set) var file: String?

    /// The kernel's own limit on symbolic links.
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
        /// Nothing, or not a configuration file: a write to `/dev/null` does not change it.
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
