internal import Foundation
internal import Glibc

/// The users other than the one of the tests.
package enum OtherUsers {
    /// Whether the tests may act as other users, and give files to them. Only root may. In a user namespace that an
    /// ordinary user has created, there are no other users.
    package static let areAvailable = geteuid() == 0 && areMapped

    /// Whether the user namespace has all users (user_namespaces(7)).
    private static var areMapped: Bool {
        let map = try? String(contentsOfFile: "/proc/self/uid_map", encoding: .utf8)
        let lines = map?.split(separator: "\n") ?? []
        return lines.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +) > 65_535
    }
}
