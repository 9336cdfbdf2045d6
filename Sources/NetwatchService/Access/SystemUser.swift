package import Glibc

/// A user of this machine.
package struct SystemUser: Sendable, CustomStringConvertible {
    package let id: uid_t
    /// `nil` if the user has no account.
    let name: String?

    package init(id: uid_t) {
        self.id = id
        name = getpwuid(id).map { String(cString: $0.pointee.pw_name) }
    }

    /// The user for people: by its name, if it has one.
    package var description: String { name.map { "the user `\($0)`" } ?? "the user \(id)" }
}
