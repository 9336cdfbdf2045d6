internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads from sysfs the properties of interfaces that netlink does not provide.
///
/// sysfs always shows the network namespace in which it was mounted, even to a thread in another one. So a monitor must
/// use ``none`` if it does not watch the namespace of its process.
struct SysfsReader: Sendable {
    /// The properties of one interface.
    struct Properties: Hashable, Sendable {
        /// The device type that the driver set (`DEVTYPE=` in `uevent`); `nil` if it set none.
        var deviceType: String?
        /// Whether the interface is a Wi-Fi interface: it has an entry `phy80211`. The entry `wireless` is not used,
        /// because only kernels with the old wireless extensions have it.
        var isWireless = false
    }

    /// A reader that returns `nil` for every interface.
    static let none = SysfsReader(root: nil)
    /// The reader of the system's sysfs.
    static let system = SysfsReader(root: "/sys/class/net")

    /// The maximum size of a file in bytes: one page, because no sysfs attribute is longer.
    private static let maxFileSize = 4096

    private let root: String?

    /// - Parameter root: The directory with one subdirectory per interface. With `nil` nothing is read.
    init(root: String?) {
        self.root = root
    }

    /// Returns the properties of a link; `nil` if sysfs does not show this link.
    ///
    /// sysfs finds interfaces by name, and a name can move to another interface. So the properties are returned only
    /// if `uevent` contains the index of the link.
    func properties(of link: Link) -> Properties? {
        guard let root, Self.isInterfaceName(link.name) else { return nil }
        let directory = "\(root)/\(link.name)"
        guard let uevent = Self.contents(of: "\(directory)/uevent").map(Self.values) else { return nil }
        guard uevent["IFINDEX"] == String(link.index) else { return nil }
        let isWireless = access("\(directory)/phy80211", F_OK) == 0
        return Properties(deviceType: uevent["DEVTYPE"], isWireless: isWireless)
    }

    /// Returns whether the kernel would allow this interface name. The rule also keeps the path inside the root.
    private static func isInterfaceName(_ name: String) -> Bool {
        let isShort = (1...InterfaceName.maximumBytes).contains(name.utf8.count)
        let forbidden: Set<Character> = ["/", ":", "\0"]
        let isClean = !name.contains { $0.isWhitespace || forbidden.contains($0) }
        return isShort && isClean && name != "." && name != ".."
    }

    /// Returns the values in a `uevent` file, which has lines of the form `KEY=value`.
    private static func values(_ text: String) -> [Substring: String] {
        let pairs = text.split(separator: "\n").compactMap { line -> (Substring, String)? in
            guard let equals = line.firstIndex(of: "=") else { return nil }
            return (line[..<equals], String(line[line.index(after: equals)...]))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// Returns the text of a regular file shorter than ``maxFileSize``; `nil` for any other file. Never blocks.
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
