internal import CNetwatchLinux
package import Glibc
package import NetwatchEventLoop

/// Who may connect to a unix socket besides its owner and root: the members of some groups.
///
/// connect(2) needs write permission for the file of the socket (unix(7)). A mode has only one group, so the groups are
/// entries of an ``AccessControlList``. The group that owns the file gets no permission by that: it is the group of the
/// service, and its members have no access unless the configuration names the group.
package struct SocketPermissions: Hashable, Sendable {
    /// The groups, sorted by their ids.
    let groups: [SystemGroup]

    /// - Parameter groups: The groups. Default: none. Of several with the same id, only the first one is used.
    package init(groups: [SystemGroup] = []) {
        let unique = Dictionary(groups.map { ($0.id, $0) }) { first, _ in first }
        self.groups = unique.values.sorted { $0.id < $1.id }
    }

    /// The mode of a socket to which only its owner and root can connect.
    static let ownerMode: mode_t = 0o600
    /// The mode of a socket to which every user can connect.
    private static let openMode: mode_t = 0o666
    private static let readAndWrite: UInt16 = 6

    private var list: AccessControlList {
        let named = groups.map {
            AccessControlList.Entry(tag: .group, permissions: Self.readAndWrite, id: $0.id)
        }
        return AccessControlList(
            [.init(tag: .owner, permissions: Self.readAndWrite), .init(tag: .owningGroup, permissions: 0)]
                + named
                + [.init(tag: .mask, permissions: Self.readAndWrite), .init(tag: .others, permissions: 0)]
        )
    }

    /// Sets the permissions of the file of a socket, which must belong to this user.
    ///
    /// If the list is refused, every user gets the permission to connect. Otherwise the groups could not use the
    /// service. The server then refuses users without access when they connect.
    ///
    /// - Returns: Who can connect now.
    /// - Throws: ``SystemError`` if the mode cannot be changed.
    func apply(to path: String) throws(SystemError) -> SocketAdmission {
        guard !groups.isEmpty else {
            // First the mode. It is also the mask of a list, so the list permits nothing from here on.
            try Self.changeMode(of: path, to: Self.ownerMode)
            AccessControlList.remove(from: path)
            return .owner
        }
        do throws(SystemError) {
            try list.set(on: path)
            return .groups(groups)
        } catch {
            AccessControlList.remove(from: path)
            try Self.changeMode(of: path, to: Self.openMode)
            return .everyone(error)
        }
    }

    private static func changeMode(of path: String, to mode: mode_t) throws(SystemError) {
        try systemCall("chmod \(path)") { fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) }
    }
}

/// Who can connect to a unix socket, besides root.
package enum SocketAdmission: Hashable, Sendable {
    /// Only the owner of the socket.
    case owner
    /// The owner and the members of these groups.
    case groups([SystemGroup])
    /// Every user. The error is why the file has no access control list; `nil` if that is not known.
    case everyone(SystemError?)

    /// Reads who can connect; `nil` if the file does not exist or cannot be examined.
    ///
    /// - Parameter path: The path of the socket, as the bytes that the kernel uses.
    package init?(of path: [UInt8]) {
        let path = path.map { CChar(bitPattern: $0) } + [0]
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let list: AccessControlList?
        var obstacle: SystemError?
        do throws(SystemError) {
            list = try AccessControlList(of: path)
        } catch {
            (list, obstacle) = (nil, error)
        }
        let isGroupPermitted = status.st_mode & S_IWGRP != 0
        let groups = list?.writingGroups(owning: status.st_gid) ?? (isGroupPermitted ? [status.st_gid] : [])
        if status.st_mode & S_IWOTH != 0 {
            self = .everyone(obstacle)
        } else if groups.isEmpty {
            self = .owner
        } else {
            self = .groups(groups.map(SystemGroup.init(id:)))
        }
    }
}

extension AccessControlList {
    /// Returns the groups whose members may write.
    ///
    /// - Parameter group: The group that owns the file.
    fileprivate func writingGroups(owning group: gid_t) -> [gid_t] {
        let mask = entries.first { $0.tag == .mask }?.permissions ?? .max
        return entries.filter { $0.permissions & mask & 2 != 0 }.compactMap { entry in
            switch entry.tag {
            case .group: entry.id
            case .owningGroup: group
            case .owner, .user, .mask, .others: nil
            }
        }
    }
}

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

/// A group of this machine.
package struct SystemGroup: Hashable, Sendable {
    package let name: String
    package let id: gid_t

    package init(name: String, id: gid_t) {
        self.name = name
        self.id = id
    }

    /// A group by its id. If it has no name, its id stands for the name. Reads the group database, which may take long
    /// on a machine without a network.
    package init(id: gid_t) {
        self.init(name: getgrgid(id).map { String(cString: $0.pointee.gr_name) } ?? "\(id)", id: id)
    }

    /// Looks a group up by its name, like ``init(named:reading:)``.
    package typealias Lookup = @Sendable (_ name: String) throws(SystemError) -> SystemGroup?

    /// Looks a group up by its name; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - read: Reads an entry of the group database. Default: `getgrnam_r`.
    /// - Throws: ``SystemError`` if the group database cannot be read, or if the entry is longer than 16 MiB. This may be
    ///   temporary.
    package init?(named name: String, reading read: Reader = getgrnam_r) throws(SystemError) {
        var size = 1024
        while true {
            var entry = group()
            var found: UnsafeMutablePointer<group>?
            var buffer = [CChar](repeating: 0, count: size)
            let error = read(name, &entry, &buffer, size, &found)
            switch error {
            case 0 where found != nil:
                self.init(name: name, id: entry.gr_gid)
                return
            case 0, ENOENT, ESRCH: return nil
            case EINTR: continue
            case ERANGE where size < Self.longestEntry: size *= 4
            default: throw SystemError(call: "getgrnam_r", errno: error)
            }
        }
    }

    /// A function like getgrnam_r(3).
    package typealias Reader = (
        UnsafePointer<CChar>?, UnsafeMutablePointer<group>?, UnsafeMutablePointer<CChar>?, Int,
        UnsafeMutablePointer<UnsafeMutablePointer<group>?>?
    ) -> CInt

    /// The maximum size of a group's entry in bytes, which grows with the number of its members.
    private static let longestEntry = 16 << 20
}
