internal import NetwatchEventLoop

/// The lookups of a watched name. All watches of the name share them, whatever their options.
final class WatchedName {
    var resolution: NameResolution
    /// The last lookup that was started; `nil` before the first one. Needed to abandon it.
    var lookup: NameResolver.Lookup?
    /// The targets with this name. Not references, because each target refers to its name.
    private(set) var targets: [WatchKey] = []
    private var unreachable: Set<WatchKey> = []

    init(_ resolution: NameResolution) { self.resolution = resolution }

    var text: String { resolution.name }

    func add(_ target: WatchKey) {
        targets.append(target)
    }

    /// Removes a target. Returns whether none is left.
    func remove(_ target: WatchKey) -> Bool {
        targets.removeAll { $0 == target }
        unreachable.remove(target)
        return targets.isEmpty
    }

    /// Records whether a target is reachable at the addresses of the name. The addresses count as unreachable if one
    /// target is not reachable at them, because the name may soon get others at which it is.
    func note(_ target: WatchKey, isReachable: Bool, now: BootInstant) {
        if isReachable { unreachable.remove(target) } else { unreachable.insert(target) }
        resolution.note(isReachable: unreachable.isEmpty, now: now)
    }
}
