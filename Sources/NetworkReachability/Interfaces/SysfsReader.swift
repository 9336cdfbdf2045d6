internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads what sysfs tells of an interface and netlink does not.
///
/// sysfs shows the network namespace in which it was mounted, whatever namespace the reader is in: a
/// monitor of another namespace must use ``none``.
struct SysfsReader: Sendable {
    /// What there is to know.
    struct Evidence: Hashable, Sendable {
        /// The driver's word for the device: `DEVTYPE=` of `uevent`.
        var deviceType: String?
        /// Whether it belongs to a radio: `phy80211` is there. `wireless` exists only in kernels with the
        /// old wireless extensions.
        var isWireless = false
    }

    /// Knows nothing of any interface.
    static let none = SysfsReader(root: nil)
    /// Where the system mounts it.
    static let system = SysfsReader(root: "/sys/class/net")

    /// sysfs never gives more than a page.
    private static let longestFile = 4096

    private let root: String?

    /// - Parameter root: The directory that holds a directory for each interface.
    init(root: String?) {
        self.root = root
    }

    /// What is known of a link; `nil` when nothing is.
    ///
    /// Interfaces are found by name, and names move between interfaces. So the answer counts only if it
    /// comes with the link's own index.
    func evidence(of link: Link) -> Evidence? {
        guard let root, Self.isInterfaceName(link.name) else { return nil }
        let directory = "\(root)/\(link.name)"
        guard let uevent = Self.contents(of: "\(directory)/uevent").map(Self.values) else { return nil }
        guard uevent["IFINDEX"] == String(link.index) else { return nil }
        let isWireless = access("\(directory)/phy80211", F_OK) == 0
        return Evidence(deviceType: uevent["DEVTYPE"], isWireless: isWireless)
    }

    /// The kernel's own rule for names, so that none leads out of the root.
    private static func isInterfaceName(_ name: String) -> Bool {
        let isShort = (1..<Int(IF_NAMESIZE)).contains(name.utf8.count)
        let forbidden: Set<Character> = ["/", ":", "\0"]
        let isClean = !name.contains { $0.isWhitespace || forbidden.contains($0) }
        return isShort && isClean && name != "." && name != ".."
    }

    /// The lines `KEY=value` of a `uevent` file.
    private static func values(_ text: String) -> [Substring: String] {
        let pairs = text.split(separator: "\n").compactMap { line -> (Substring, String)? in
            guard let equals = line.firstIndex(of: "=") else { return nil }
            return (line[..<equals], String(line[line.index(after: equals)...]))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// The text of a file; `nil` unless it is a regular file of less than a page. Never waits.
    private static func contents(of path: String) -> String? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let number = try? systemCall("open", { open(path, flags) }) else { return nil }
        let file = FileDescriptor(owning: number)
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: longestFile)
        let count = read(file.rawValue, &bytes, bytes.count)
        guard count >= 0, count < bytes.count else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
