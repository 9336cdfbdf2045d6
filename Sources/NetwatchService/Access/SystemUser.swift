package import Glibc

/// A user of this machine.
package struct SystemUser: Sendable, CustomStringConvertible {
    package let id: uid_t
    /// `nil` if the user has no account. Reads the user database, which may take long on a machine without a network.
    var name: String? { getpwuid(id).map { String(cString: $0.pointee.pw_name) } }

    package init(id: uid_t) {
        self.id = id
    }

    /// Looks a user up by its name in the user database; `nil` if there is none. Like ``name``, this may take long.
    package init?(named name: String) {
        guard let entry = getpwnam(name) else { return nil }
        id = entry.pointee.pw_uid
    }

    /// The user for people: by its name, if it has one. Reads the user database like ``name``.
    package var description: String { name.map { "the user `\($0)`" } ?? "the user \(id)" }
}
