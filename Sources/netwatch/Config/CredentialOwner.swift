internal import Glibc
internal import NetwatchService

/// The user whose credential files the service accepts, besides those of root.
enum CredentialOwner {
    /// Returns the user of this process. For root, returns the user of the service: of the process that runs it, or
    /// else the owner of the queue's directory.
    ///
    /// - Parameters:
    ///   - running: The user of the running service; `nil` if none runs or its user is not known.
    ///   - directory: The queue's directory.
    ///   - process: The user of this process. Default: the effective user.
    static func id(running: UInt32?, directory: String, process: UInt32 = geteuid()) -> UInt32 {
        guard process == 0 else { return process }
        if let running { return running }
        return (try? DirectoryOwner(of: directory))?.user.id ?? process
    }
}
