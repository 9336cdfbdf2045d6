internal import NetwatchEventLoop

/// The name of a watched target and the lookup in progress.
final class WatchedName {
    var resolution: NameResolution
    /// The lookup in progress, kept so that it can be abandoned.
    var lookup: NameResolver.Lookup?

    init(_ resolution: NameResolution) { self.resolution = resolution }
}
