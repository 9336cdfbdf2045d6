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

    /// Looks a group up by its name, like ``init(named:reading:)``.
    package typealias Lookup = @Sendable (_ name: String) throws(SystemError) -> SystemGroup?

    /// Looks a group up by its name; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - read: Reads an entry of the group database. Default: `getgrnam_r`.
    /// - Throws: ``SystemError`` if the group database cannot be read. This may be temporary.
    package init?(named name: String, reading read: Reader = getgrnam_r) throws(SystemError) {
        var size = 1024
        while size <= Self.longestEntry {
            var entry = group()
            var found: UnsafeMutablePointer<group>?
            var buffer = [CChar](repeating: 0, count: size)
            let error = read(name, &entry, &buffer, size, &found)
            if error == 0, found != nil {
                self.init(name: name, id: entry.gr_gid)
                return
            }
            guard !Self.unknown.contains(error) else { return nil }
            guard error == ERANGE else { throw SystemError(call: "getgrnam_r", errno: error) }
            size *= 4
        }
        return nil
    }

    /// A function like getgrnam_r(3).
    package typealias Reader = (
        UnsafePointer<CChar>?, UnsafeMutablePointer<group>?, UnsafeMutablePointer<CChar>?, Int,
        UnsafeMutablePointer<UnsafeMutablePointer<group>?>?
    ) -> CInt

    /// The results for a name that is not in the database, from getgrnam(3).
    private static let unknown: Set<CInt> = [0, ENOENT, ESRCH, EBADF, EPERM]

    /// The maximum size of a group's entry in bytes, which grows with the number of its members.
    private static let longestEntry = 16 << 20
}
