package import Glibc

/// A group of this machine.
package struct SystemGroup: Hashable, Sendable {
    package let name: String
    package let id: gid_t

    package init(name: String, id: gid_t) {
        self.name = name
        self.id = id
    }

    /// Looks a group up by its name; `nil` if there is none, or if it cannot be looked up.
    package init?(named name: String) {
        var size = 1024
        while size <= Self.longestEntry {
            var entry = group()
            var found: UnsafeMutablePointer<group>?
            var buffer = [CChar](repeating: 0, count: size)
            let error = getgrnam_r(name, &entry, &buffer, size, &found)
            if error == 0, found != nil {
                self.init(name: name, id: entry.gr_gid)
                return
            }
            guard error == ERANGE else { return nil }
            size *= 4
        }
        return nil
    }

    /// The maximum size of a group's entry in bytes, which grows with the number of its members.
    private static let longestEntry = 16 << 20
}
