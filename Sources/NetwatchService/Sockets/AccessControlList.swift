internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// The access control list of a file (acl(5)).
///
/// The kernel reads and writes it as the value of an extended attribute. The format is part of the kernel's interface
/// (linux/posix_acl.h and linux/posix_acl_xattr.h): a version of 4 bytes, and 8 bytes for each entry, little-endian.
/// libacl writes the same bytes, but would be another library to build with and to install.
struct AccessControlList: Hashable {
    /// The users that an entry concerns. The raw values are those of linux/posix_acl.h.
    enum Tag: UInt16 {
        case owner = 0x01
        case user = 0x02
        case owningGroup = 0x04
        case group = 0x08
        /// The most that the entries of users and groups permit, except that of the owner. The group bits of the file's
        /// mode are this entry.
        case mask = 0x10
        case others = 0x20
    }

    struct Entry: Hashable {
        let tag: Tag
        /// Bits as in one digit of a mode: 4 to read, 2 to write, 1 to execute.
        let permissions: UInt16
        /// The id of a user or a group; ``undefined`` for the other tags.
        var id = Self.undefined

        /// `ACL_UNDEFINED_ID`
        static let undefined = UInt32.max
    }

    /// The name of the attribute, `XATTR_NAME_POSIX_ACL_ACCESS` of linux/xattr.h.
    private static let attribute = "system.posix_acl_access"
    /// `POSIX_ACL_XATTR_VERSION`
    private static let version: UInt32 = 2
    /// `XATTR_SIZE_MAX` of linux/limits.h: the maximum size of an attribute in bytes.
    private static let longest = 65_536

    /// The entries. The kernel accepts them only in the order of ``Tag``.
    let entries: [Entry]

    init(_ entries: [Entry]) {
        self.entries = entries
    }

    /// Parses the value of the attribute; `nil` if its format is unknown.
    init?(bytes: [UInt8]) {
        guard bytes.count >= 4, bytes.count % 8 == 4, Self.number(bytes[..<4]) == Self.version else {
            return nil
        }
        var entries: [Entry] = []
        for start in stride(from: 4, to: bytes.count, by: 8) {
            let tag = UInt16(truncatingIfNeeded: Self.number(bytes[start..<start + 2]))
            guard let tag = Tag(rawValue: tag) else { return nil }
            let permissions = UInt16(truncatingIfNeeded: Self.number(bytes[start + 2..<start + 4]))
            let id = Self.number(bytes[start + 4..<start + 8])
            entries.append(Entry(tag: tag, permissions: permissions, id: id))
        }
        self.entries = entries
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The value of the attribute.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        func append(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }
        append(Self.version)
        for entry in entries {
            append(entry.tag.rawValue)
            append(entry.permissions)
            append(entry.id)
        }
        return bytes
    }
}

// MARK: - Files

extension AccessControlList {
    /// Sets the list of a file, and with it the mode of the file, in one step. Only the owner may do that.
    ///
    /// - Throws: ``SystemError``: `EOPNOTSUPP` if the file system has no lists, `E2BIG` or `ENOSPC` if the list is too
    ///   long, `EINVAL` if a group has no id in the user namespace of this process.
    func set(on path: String) throws(SystemError) {
        let bytes = bytes
        try systemCall("setxattr \(Self.attribute) \(path)") {
            netwatch_set_attribute(path, Self.attribute, bytes, bytes.count)
        }
    }

    /// Removes the list of a file. The mode of the file stays. Has no effect if there is no list.
    static func remove(from path: String) {
        _ = netwatch_remove_attribute(path, attribute)
    }

    /// Reads the list of a file; `nil` if it has none, so that only its mode applies.
    ///
    /// - Throws: ``SystemError``: `EOPNOTSUPP` if the file system has no lists.
    init?(of path: [CChar]) throws(SystemError) {
        var bytes = [UInt8](repeating: 0, count: Self.longest)
        let count: Int
        do throws(SystemError) {
            count = try systemCall("getxattr \(Self.attribute)") {
                netwatch_get_attribute(path, Self.attribute, &bytes, bytes.count)
            }
        } catch {
            guard error.errno == ENODATA else { throw error }
            return nil
        }
        self.init(bytes: Array(bytes.prefix(count)))
    }
}
