/// Credentials that are not registered, for example files. A registered credential of the same name takes precedence.
package protocol CredentialSource: Sendable {
    /// Returns the credential of this name. Called at each attempt.
    ///
    /// - Throws: ``WithheldReason`` if there is none, or it cannot be used.
    func credential(named name: String) async throws -> QueueCredential

    /// Returns the names of the credentials that exist now, in no particular order. Some of them may be unusable.
    func names() async -> [String]
}
