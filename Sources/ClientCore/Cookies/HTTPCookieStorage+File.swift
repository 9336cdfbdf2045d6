public import Foundation
public import FoundationNetworking

extension HTTPCookieStorage {
    /// Returns a storage whose cookies are kept in a file that only this user can read (mode 0600).
    ///
    /// ```swift
    /// let configuration = URLSessionConfiguration.default
    /// configuration.httpCookieStorage = try .file()
    /// let session = SessionManager(configuration: configuration)
    /// ```
    ///
    /// Use it for `URLSessionConfiguration.httpCookieStorage`, in one or several sessions. The sessions write the file
    /// whenever a response changes the cookies. They do not sync it, so a power failure may lose the latest changes. If
    /// the file cannot be written, for example because the disk is full, the cookies stay in memory, and the next
    /// change writes all of them. ``saveToFile()`` reports the error. Changes that the program makes itself are written
    /// with the next change, or by ``saveToFile()``.
    ///
    /// Cookies without an expiry date, or with a date that is not finite, end with the process. The order in which
    /// cookies are sent survives a restart.
    ///
    /// - Parameter url: The file, which need not exist. Missing directories are created with mode 0700. Default `nil`:
    ///   `$XDG_STATE_HOME/<program>/cookies.json`, or the same in `~/.local/state`, with the name of the executable.
    /// - Throws: ``CookieFileError``, for example if other users can read the file, if the file is damaged, or if
    ///   another process or storage uses it. The file is then unchanged.
    public static func file(at url: URL? = nil) throws -> HTTPCookieStorage {
        let file = try CookieFile(url.map(CookieFile.path(of:)) ?? CookieFile.standardPath())
        CookieFile.add(file)
        return file.storage
    }

    /// Writes the cookies to the file of a storage that ``file(at:)`` has returned. Blocks until they are written.
    ///
    /// May be called from any thread.
    ///
    /// - Throws: ``CookieFileError``. The cookies then stay in memory.
    public func saveToFile() throws {
        guard let file = CookieFile.file(of: self) else { throw CookieFileError(file: "", reason: .noFile) }
        try file.save()
    }
}
