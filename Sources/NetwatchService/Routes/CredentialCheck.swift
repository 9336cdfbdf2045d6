internal import NIOHTTP1
internal import OfflineQueue

extension QueueRoutes {
    /// Refuses the names of credentials that the service does not have. Without the service, the credentials are not
    /// known. The queue itself refuses invalid names.
    ///
    /// - Parameter usable: Whether to refuse credentials that exist, but cannot be used until they change, as well.
    func requireCredentials(_ names: [String?], usable: Bool) async throws {
        guard isRunning else { return }
        for name in names.compactMap(\.self) where CredentialName.isValid(name) {
            guard let fault = await queue.credentialFault(of: name) else { continue }
            guard usable || fault.isUnknown else { continue }
            throw Problem(fault, known: await queue.credentialNames)
        }
    }
}

extension Problem {
    fileprivate init(_ fault: WithheldReason, known names: Set<String>) {
        guard fault.isUnknown else {
            self.init(.badRequest, code: "unusable_credential", detail: fault.reason)
            return
        }
        let known = names.isEmpty ? "" : "; known: " + names.sorted().joined(separator: ", ")
        self.init(.badRequest, code: "unknown_credential", detail: fault.reason + known)
    }
}
