internal import Glibc

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
