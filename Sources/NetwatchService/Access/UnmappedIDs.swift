internal import Foundation

/// The ids that the kernel reports for users and groups without an id in the user namespace of this process
/// (user_namespaces(7)). They do not identify a user or a group.
package struct UnmappedIDs: Hashable, Sendable {
    package let user: UInt32
    package let group: UInt32

    /// The ids of this machine, from `overflowuid` and `overflowgid` in `/proc/sys/kernel`; 65534, the kernel's default,
    /// if the files cannot be read.
    package static let current = UnmappedIDs(user: id("overflowuid"), group: id("overflowgid"))

    package init(user: UInt32, group: UInt32) {
        self.user = user
        self.group = group
    }

    private static func id(_ file: String) -> UInt32 {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/\(file)", encoding: .utf8)
        return text.flatMap { UInt32($0.trimmingCharacters(in: .whitespacesAndNewlines)) } ?? 65_534
    }
}
