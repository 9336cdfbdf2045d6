internal import Glibc
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
