internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import OfflineQueue

/// Reads one credential file, and the files that it names. Blocks.
struct CredentialFileReader {
    let path: String
    let name: String
    /// The user who may own the files, besides root.
    let user: UInt32
    /// Whether the service has read the file before. If it is missing now, it was removed, or is being replaced.
    var wasRead = false

    /// The maximum size: 64 KiB. The client sends no larger header field.
    private static let maximumBytes = 64 * 1024

    /// The users that may access a file besides its owner.
    private enum Access {
        /// The file contains a secret.
        case ownerOnly
        /// The file contains no secret, but other users must not change it.
        case readable
    }

    /// Reads the credential.
    ///
    /// - Parameter note: Receives the paths of the files that the credential file names, before they are read.
    /// - Throws: ``WithheldReason``.
    func credential(noting note: ([String]) -> Void = { _ in }) throws -> QueueCredential {
        let bytes = try bytes(of: path, .ownerOnly)
        let text: CredentialText
        do {
            text = try CredentialText(parsing: String(decoding: bytes.withoutByteOrderMark, as: UTF8.self))
        } catch {
            note([])
            throw fault("\(error.line.map { "\(path), line \($0)" } ?? path): \(error.message)")
        }
        switch text.content {
        case .value(let value):
            note([])
            return try QueueCredential(value, origins: text.origins)
        case .files(let certificate, let key):
            let paths = [certificate, key].map(absolute)
            note(paths)
            let identity = try identity(certificate: paths[0], key: paths[1])
            return try QueueCredential(.clientCertificate(identity), origins: text.origins)
        }
    }

    private func identity(certificate: String, key: String) throws -> ClientIdentity {
        let certificates = Data(try bytes(of: certificate, .readable))
        let privateKey = Data(try bytes(of: key, .ownerOnly))
        do {
            return try ClientIdentity(certificates: certificates, privateKey: privateKey)
        } catch {
            throw fault("\(certificate) with \(key): \(error)")
        }
    }

    /// Returns a path that is written in the file. A relative path begins at the directory of the file.
    private func absolute(_ written: String) -> String {
        written.hasPrefix("/") ? written : "\(path.dropLast(name.utf8.count))\(written)"
    }

    private var missing: WithheldReason {
        let hint = " any more; to replace a file without a gap, write another file and rename it (`mv`)"
        return WithheldReason(
            .change,
            "there is no credential `\(name)`: \(path) does not exist\(wasRead ? hint : "")",
            isUnknown: true
        )
    }

    private func fault(_ reason: String) -> WithheldReason {
        WithheldReason(.change, "the credential `\(name)` cannot be used: \(reason)")
    }

    /// Returns the fault of a failed system call. A shortage of this machine and a failing file system may pass.
    private func systemFault(_ file: String, _ errno: CInt) -> WithheldReason {
        let mayPass =
            SystemError.shortages.contains(errno) || [EIO, ESTALE, ETIMEDOUT, EINTR].contains(errno)
        return WithheldReason(
            mayPass ? .retry : .change,
            "the credential `\(name)` cannot be used: \(file): \(errnoDescription(errno))"
        )
    }

    private func bytes(of file: String, _ access: Access) throws -> [UInt8] {
        // Opening a FIFO without O_NONBLOCK would wait for a writer.
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw errno == ENOENT && file == path ? missing : systemFault(file, errno)
        }
        let owned = FileDescriptor(owning: descriptor)
        try checkStatus(of: owned.rawValue, file, access)
        return try read(from: owned.rawValue, file)
    }

    /// Refuses files that other users may have written, and files with secrets that other users may read.
    ///
    /// A file of root may be readable by its group: systemd gives a service access to its credentials through an ACL,
    /// which appears as the permissions of the group.
    private func checkStatus(of descriptor: CInt, _ file: String, _ access: Access) throws {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw systemFault(file, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw fault("\(file) is not a regular file") }
        guard status.st_uid == 0 || status.st_uid == user else {
            throw fault("\(file) belongs to the user \(status.st_uid); accepted: \(Self.owners(user))")
        }
        let mode = status.st_mode & 0o777
        let refused: mode_t = access == .readable ? 0o022 : status.st_uid == 0 ? 0o037 : 0o077
        guard mode & refused == 0 else {
            let remedy = access == .readable ? "`chmod go-w`" : "`chmod 600`"
            throw fault("\(file) has the mode 0\(String(mode, radix: 8)); use \(remedy)")
        }
        guard status.st_size > 0 else { throw fault("\(file) is empty") }
        guard status.st_size <= Self.maximumBytes else {
            throw fault("\(file) has \(status.st_size) bytes; at most \(Self.maximumBytes) are accepted")
        }
    }

    /// The accepted owners of a file, for messages.
    static func owners(_ user: UInt32) -> String { user == 0 ? "root" : "root and \(user)" }

    private func read(from descriptor: CInt, _ file: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= Self.maximumBytes {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw systemFault(file, errno) }
            if count == 0 { break }
            bytes += buffer.prefix(count)
        }
        return bytes
    }
}
