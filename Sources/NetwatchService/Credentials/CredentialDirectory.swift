internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
package import OfflineQueue

/// The credentials of a service: a directory with a file for each, which is read at each attempt.
package struct CredentialDirectory: CredentialSource {
    /// The directory; `nil` if the service has none.
    package let path: String?
    /// The user who may own the directory and the files, besides root.
    private let user: UInt32
    /// The files that the credential files name, such as keys. They are known once a credential file was read.
    private let named = NamedFiles()

    /// - Parameters:
    ///   - path: The directory; `nil` if the service has none.
    ///   - user: The user who may own the directory and the files, besides root. Default: the user of this process.
    package init(path: String?, user: UInt32 = geteuid()) {
        self.path = path
        self.user = user
    }

    /// The name of the credential that contains the encryption keys of the queue. No request can use it.
    package static let queueKeyName = "netwatch-queue-key"

    package func credential(named name: String) async throws -> QueueCredential {
        guard let path else {
            throw WithheldReason(
                .change,
                "there is no credential `\(name)`: the service has no credentials directory; see "
                    + "`netwatch serve --credentials`, or `LoadCredential=` for its unit",
                isUnknown: true
            )
        }
        guard name != Self.queueKeyName else {
            throw WithheldReason(
                .change,
                "`\(name)` is the encryption key of the queue, and is never sent",
                isUnknown: true
            )
        }
        return try await DispatchQueue.global().run {
            let wasRead = self.named.isKnown(name)
            let reader = CredentialFileReader(
                path: "\(path)/\(name)",
                name: name,
                user: self.user,
                wasRead: wasRead
            )
            return try reader.credential { self.named.set($0, of: name) }
        }
    }

    package func names() async -> [String] {
        guard let path else { return [] }
        return await DispatchQueue.global().run {
            Self.names(in: path).filter { !Self.isPEM("\(path)/\($0)") }
        }
    }

    /// Returns the version of each credential file with the files that it names, by name. A file that cannot be
    /// examined has none.
    func versions() async -> [String: [Version?]] {
        guard let path else { return [:] }
        return await DispatchQueue.global().run {
            let pairs = Self.names(in: path).compactMap { name in
                Version(of: "\(path)/\(name)").map {
                    (name, [$0] + self.named.files(of: name).map(Version.init))
                }
            }
            return Dictionary(pairs) { first, _ in first }
        }
    }

    private static func names(in path: String) -> [String] {
        files(in: path).filter { CredentialName.isValid($0) && $0 != queueKeyName }
    }

    private static func files(in path: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    }

    /// What identifies the content and the permissions of a file.
    struct Version: Hashable, Sendable {
        private let inode: ino_t
        private let size: Int
        private let mode: mode_t
        private let owner: uid_t
        private let times: [Int]

        /// Returns `nil` if the file does not exist. Follows symbolic links.
        fileprivate init?(of path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            (inode, size, mode, owner) = (status.st_ino, status.st_size, status.st_mode, status.st_uid)
            let (content, change) = (status.st_mtim, status.st_ctim)
            times = [content.tv_sec, content.tv_nsec, change.tv_sec, change.tv_nsec]
        }
    }
}

extension CredentialDirectory {
    /// Examines the directory and its files when the service starts.
    ///
    /// - Returns: The faults of files. A fault of one file does not concern the others, so the service can start. Files
    ///   in PEM are left out, because credential files name them.
    /// - Throws: ``InvalidCredentialDirectory`` if the directory cannot be used at all.
    package func check() async throws -> [String] {
        guard let path else { return [] }
        try checkStatus(of: path)
        var faults: [String] = []
        // Hidden files are ignored without a warning: tools that replace files create them.
        for name in Self.files(in: path).sorted() where !name.hasPrefix(".") && name != Self.queueKeyName {
            guard await isCredential(name) else { continue }
            do {
                try CredentialName.check(name)
                _ = try await credential(named: name)
            } catch {
                faults.append(Self.warning(error))
            }
        }
        return faults
    }

    private static func warning(_ error: any Error) -> String {
        switch error {
        case let fault as WithheldReason: fault.reason
        case let name as QueueError: "\(name.message), so its file is ignored; rename or remove it"
        default: "\(error)"
        }
    }

    private func isCredential(_ name: String) async -> Bool {
        guard let path else { return false }
        return await DispatchQueue.global().run {
            !Self.isPEM("\(path)/\(name)")
        }
    }

    /// Returns whether a file begins like a certificate or a key in PEM (RFC 7468).
    private static func isPEM(_ file: String) -> Bool {
        // Without O_NONBLOCK, a named pipe would block the start.
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let beginning = Array("-----BEGIN ".utf8)
        var bytes = [UInt8](repeating: 0, count: beginning.count)
        return read(descriptor, &bytes, bytes.count) == bytes.count && bytes == beginning
    }

    /// Refuses a directory in which other users can replace files.
    private func checkStatus(of path: String) throws(InvalidCredentialDirectory) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw InvalidCredentialDirectory(path, errnoDescription(errno))
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw InvalidCredentialDirectory(path, "it is not a directory")
        }
        guard status.st_uid == 0 || status.st_uid == user else {
            let accepted = CredentialFileReader.owners(user)
            let words = "it belongs to the user \(status.st_uid); accepted: \(accepted)"
            throw InvalidCredentialDirectory(path, words)
        }
        guard status.st_mode & 0o022 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw InvalidCredentialDirectory(path, "it has the mode 0\(mode); use `chmod go-w`")
        }
        guard access(path, R_OK | X_OK) == 0 else {
            throw InvalidCredentialDirectory(path, errnoDescription(errno))
        }
    }
}

/// The error of a directory of credentials that cannot be used.
package struct InvalidCredentialDirectory: Error, CustomStringConvertible {
    package let description: String

    fileprivate init(_ path: String, _ reason: String) {
        description = "the directory of credentials `\(path)` cannot be used: \(reason)"
    }
}

/// The files that each credential file names.
private final class NamedFiles: Sendable {
    private let paths = Lock<[String: [String]]>([:])

    func files(of name: String) -> [String] { paths.withLock { $0[name] ?? [] } }

    /// Whether the credential file was read.
    func isKnown(_ name: String) -> Bool { paths.withLock { $0[name] != nil } }

    func set(_ files: [String], of name: String) { paths.withLock { $0[name] = files } }
}

/// Releases requests that are held because of their credential when its file changes.
///
/// The files are examined at a fixed interval. inotify(7) would report fewer changes: it misses files behind symbolic
/// links, on network file systems, and in a directory that was replaced.
package struct CredentialWatch: Sendable {
    /// The time between two examinations. It is short enough for a person who waits for the effect of a change.
    package static let interval: Duration = .seconds(2)

    private let directory: CredentialDirectory
    private let interval: Duration
    private var versions: [String: [CredentialDirectory.Version?]]

    /// Records the current versions of the files. Later changes are reported.
    package init(_ directory: CredentialDirectory, interval: Duration = Self.interval) async {
        self.directory = directory
        self.interval = interval
        versions = await directory.versions()
    }

    /// Reports changes to the queue until the task is cancelled, or the queue's store fails.
    package consuming func run(for queue: OfflineQueue) async {
        var watch = self
        while (try? await Task.sleep(for: watch.interval, clock: .continuous)) != nil {
            let changed = await watch.changes()
            guard !changed.isEmpty else { continue }
            do { try await queue.credentialsChanged(changed) } catch { return }
        }
    }

    /// Returns the names of the files that were added, changed or removed since the last call.
    private mutating func changes() async -> Set<String> {
        let current = await directory.versions()
        defer { versions = current }
        return Set(versions.keys).union(current.keys).filter { versions[$0] != current[$0] }
    }
}
