internal import NetwatchEventLoop

/// The lookups of the name of one watched target.
final class WatchedName {
    var resolution: NameResolution
    /// The last lookup that was started; `nil` before the first one. Needed to abandon it.
    var lookup: NameResolver.Lookup?

    init(_ resolution: NameResolution) { self.resolution = resolution }
}
