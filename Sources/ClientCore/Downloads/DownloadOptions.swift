/// Options for moving a downloaded file to its destination.
public struct DownloadOptions: OptionSet, Sendable {
    /// The raw bits of the options.
    public let rawValue: UInt

    /// Creates options from raw bits.
    ///
    /// - Parameter rawValue: The raw bits of the options.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// Creates the directory of the destination and its parents if they are missing. Without this option, a missing
    /// directory is an error.
    public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)

    /// Replaces an existing file at the destination. At any time, the path leads to either the old file or the new one.
    /// Without this option, an existing file is an error. A directory is never replaced.
    public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)
}
