package import Glibc
package import NetwatchEventLoop

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
