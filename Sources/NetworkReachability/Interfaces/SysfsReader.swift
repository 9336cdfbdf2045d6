internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads properties of interfaces that netlink does not provide from sysfs.
///
/// sysfs shows the network namespace in which it was mounted, not the namespace of the reader. A monitor of another
/// namespace must use ``none``.
struct SysfsReader: Sendable {
    /// The properties read for one interface.
    struct Properties: Hashable, Sendable {
        /// The device type set by the driver: `DEVTYPE=` in `uevent`.
        var deviceType: String?
        /// Whether the interface belongs to a radio, which the presence of `phy80211` shows. The file `wireless`
        /// would not do: it exists only in kernels with the old wireless extensions.
        var isWireless = false
    }

    /// A reader that returns nothing for every interface.
    static let none = SysfsReader(root: nil)
    /// The reader of the system's sysfs.
    static let system = SysfsReader(root: "/sys/class/net")

    /// The size of a page: no sysfs attribute is longer.
    private static let maxFileSize = 4096

    private let root: String?

    /// - Parameter root: The directory with one subdirectory per interface.
    init(root: String?) {
        self.root = root
    }

    /// Returns the properties of a link; `nil` if they cannot be read.
    ///
    /// Interfaces are found by name, and a name can move to another interface. So the properties are used only if the
    /// link's own index is next to them.
    func properties(of link: Link) -> Properties? {
        guard let root, Self.isInterfaceName(link.name) else { return nil }
        let directory = "\(root)/\(link.name)"
        guard let uevent = Self.contents(of: "\(directory)/uevent").map(Self.values) else { return nil }
        guard uevent["IFINDEX"] == String(link.index) else { return nil }
        let isWireless = access("\(directory)/phy80211", F_OK) == 0
        return Properties(deviceType: uevent["DEVTYPE"], isWireless: isWireless)
    }

    /// The kernel's rule for interface names. It also keeps the path inside the root.
    private static func isInterfaceName(_ name: String) -> Bool {
        let isShort = (1..<Int(IF_NAMESIZE)).contains(name.utf8.count)
        let forbidden: Set<Character> = ["/", ":", "\0"]
        let isClean = !name.contains { $0.isWhitespace || forbidden.contains($0) }
        return isShort && isClean && name != "." && name != ".."
    }

    /// Parses the lines `KEY=value` of a `uevent` file.
    private static func values(_ text: String) -> [Substring: String] {
        let pairs = text.split(separator: "\n").compactMap { line -> (Substring, String)? in
            guard let equals = line.firstIndex(of: "=") else { return nil }
            return (line[..<equals], String(line[line.index(after: equals)...]))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// Returns the text of a file; `nil` unless it is a regular file shorter than a page. Never blocks.
    private static func contents(of path: String) -> String? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let number = try? systemCall("open", { open(path, flags) }) else { return nil }
        let file = FileDescriptor(owning: number)
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: maxFileSize)
        let count = read(file.rawValue, &bytes, bytes.count)
        guard count >= 0, count < bytes.count else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
