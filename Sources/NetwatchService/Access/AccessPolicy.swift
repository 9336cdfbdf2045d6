internal import Foundation
internal import Glibc

/// Decides what each user may do with the control API.
///
/// Root and the user of this process have full access, members of the configured groups have the access of their group.
/// Others have none.
package struct AccessPolicy: Hashable, Sendable {
    /// The groups whose members may submit requests. Default: none.
    package var submitGroups: [SystemGroup] = []
    /// The groups whose members may read. Default: none.
    package var readGroups: [SystemGroup] = []
    /// The user of the service.
    private let owner: uid_t
    private let unmapped: UnmappedIDs

    /// - Parameters:
    ///   - owner: The user of the service. Default: the effective user of this process.
    ///   - unmapped: The ids that do not identify a user or a group. Default: those of this machine.
    package init(owner: UInt32 = geteuid(), unmapped: UnmappedIDs = .current) {
        self.owner = owner
        self.unmapped = unmapped
    }

    /// Whether users other than root and the user of the service may have access.
    private var hasGroups: Bool { !submitGroups.isEmpty || !readGroups.isEmpty }

    /// The permissions of the control socket: the members of all groups can connect.
    package var socketPermissions: SocketPermissions { SocketPermissions(groups: submitGroups + readGroups) }

    /// Returns the sender of a request.
    ///
    /// - Parameter peer: The process at the other end; `nil` for TCP, over which every user may read.
    func caller(_ peer: PeerCredentials?) -> Caller {
        guard let peer else { return Caller(user: nil, access: .read) }
        guard isIdentified(peer.uid) else { return Caller(user: nil, access: .none) }
        return Caller(user: peer.uid, access: access(of: peer))
    }

    /// Returns whether an id identifies a user. Without groups, only the user of the service and root can connect, so
    /// the id of the service's user does.
    private func isIdentified(_ user: uid_t) -> Bool {
        user != unmapped.user || (!hasGroups && user == owner)
    }

    /// Returns why groups cannot have access, as a part of a sentence; `nil` if they can.
    func fault(of groups: [SystemGroup]) -> String? {
        guard !groups.isEmpty else { return nil }
        if owner == unmapped.user {
            return
                "the service runs as the user \(owner), whose id also stands for users without an id in its user "
                + "namespace; run it as another user"
        }
        return groups.first { $0.id == unmapped.group }.map {
            "the id \($0.id) of the group `\($0.name)` also stands for groups without an id in the user namespace of the "
                + "service; use another group"
        }
    }

    private func access(of peer: PeerCredentials) -> Access {
        if peer.uid == 0 || peer.uid == owner { return .full }
        let groups = Set(peer.groups + [peer.gid]).subtracting([unmapped.group])
        if submitGroups.contains(where: { groups.contains($0.id) }) { return .submit }
        return readGroups.contains { groups.contains($0.id) } ? .read : .none
    }

    /// Returns what a caller without an access may not do, and how to get the access.
    func refusal(of caller: Caller, without access: Access) -> String {
        if let user = caller.user {
            return "this user (\(user)) may not \(access.permission); \(remedy(for: access))"
        }
        return caller.access == .none
            ? "this user may not \(access.permission); the id \(unmapped.user) also stands for users without an id in "
                + "the user namespace of the service, so it has no access"
            : "connections over TCP may not \(access.permission); use the socket of the service"
    }

    /// Returns how a user gets an access, as a part of a sentence.
    package func remedy(for access: Access) -> String {
        let groups = access == .submit ? submitGroups : submitGroups + readGroups
        let names = groups.map { "`\($0.name)`" }.joined(separator: " or ")
        let keys = "`access.submit-groups`" + (access == .submit ? "" : " or `access.read-groups`")
        return switch access {
        case .full: "only root and the user of the service may"
        case _ where groups.isEmpty:
            "add a group of this user to \(keys) in the configuration of the service, and reload the service"
        default: "add this user to the group \(names) (\(keys)), and log in again"
        }
    }
}

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
