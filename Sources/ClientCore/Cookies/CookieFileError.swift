public import Foundation
internal import NetwatchEventLoop

/// The error for a file of cookies that cannot be read or written.
public struct CookieFileError: Error, Hashable, Sendable {
    /// The reasons for the error.
    public enum Reason: Hashable, Sendable {
        /// Another process, or another storage of this process, uses the file.
        case inUse
        /// The file belongs to another user, or other users may read or change it.
        case notPrivate
        /// The file was not written by netwatch, is damaged, or has more than 64 MiB.
        case damaged
        /// The storage has no file.
        case noFile
        /// A system call has failed. The value is the system's error number, see `errno(3)`.
        case system(errno: Int32)
    }

    /// The path of the file; empty for ``Reason-swift.enum/noFile``.
    public let file: String
    /// The reason for the error.
    public let reason: Reason
}

extension CookieFileError: LocalizedError, CustomStringConvertible {
    /// The file, the error, and what to do.
    public var description: String {
        switch reason {
        case .inUse: "the cookies in `\(file)` are in use by another process or storage"
        case .notPrivate: "`\(file)` must be a file of this user with mode 0600"
        case .damaged: "`\(file)` does not contain cookies, or is damaged; remove it to begin without cookies"
        case .noFile: "the cookies have no file; use a storage from `file(at:)`"
        case .system(let errno): "cookies in `\(file)`: \(errnoDescription(errno))"
        }
    }

    /// The same as ``description``.
    public var errorDescription: String? { description }
}
