/// What may be done to make room for a downloaded file at its destination.
public struct DownloadOptions: OptionSet, Sendable {
    /// The bits of the options.
    public let rawValue: UInt

    /// - Parameter rawValue: The bits of the options.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// Makes the directories of the destination that are missing. Without it, a missing directory is an
    /// error.
    public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)

    /// Replaces a file that is at the destination, in one step: whoever looks finds the old file or the new
    /// one. Without it, an occupied destination is an error. A directory is never replaced.
    public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)
}
