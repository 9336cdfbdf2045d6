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

    /// - Parameter owner: The user of the service. Default: the effective user of this process.
    package init(owner: UInt32 = geteuid()) {
        self.owner = owner
    }

    /// Whether users other than root and the user of the service may have access.
    var hasGroups: Bool { !submitGroups.isEmpty || !readGroups.isEmpty }

    /// Returns the sender of a request.
    ///
    /// - Parameter peer: The process at the other end; `nil` for TCP, over which every user may read.
    func caller(_ peer: PeerCredentials?) -> Caller {
        Caller(user: peer?.uid, access: peer.map(access) ?? .read)
    }

    private func access(of peer: PeerCredentials) -> Access {
        if peer.uid == 0 || peer.uid == owner { return .full }
        let groups = Set(peer.groups + [peer.gid])
        if submitGroups.contains(where: { groups.contains($0.id) }) { return .submit }
        return readGroups.contains { groups.contains($0.id) } ? .read : .none
    }

    /// Returns how a user gets an access that it does not have, as a part of a sentence.
    func remedy(for access: Access) -> String {
        let groups = access == .submit ? submitGroups : readGroups + submitGroups
        let names = groups.map { "`\($0.name)`" }.joined(separator: " or ")
        let key = access == .submit ? "access.submit-groups" : "access.read-groups"
        return switch access {
        case .full: "only root and the user of the service have it"
        case _ where groups.isEmpty:
            "add a group of this user to `\(key)` in the configuration of the service, and restart the service"
        default: "add the user to the group \(names) (`\(key)`), and log in again"
        }
    }
}
