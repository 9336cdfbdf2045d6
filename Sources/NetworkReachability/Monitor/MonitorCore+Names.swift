internal import NetwatchEventLoop

// Looks up the names of watched targets.
extension MonitorCore {
    /// Looks up all names again after a change of the network or of the resolver configuration.
    ///
    /// Names that are not reachable come first, because the others wait for their turns.
    func resolveAll() {
        names.renew()
        changedNames = []
        let all = names.all
        for isReachable in [false, true] {
            for name in all where (name.resolution.isReachable == true) == isReachable {
                resolve(name, .networkChange)
            }
        }
    }

    /// Looks up the names whose path has changed in this turn, each once.
    func resolveChanged() {
        while let text = changedNames.popFirst() {
            if let name = names[text] { resolve(name, .pathChange) }
        }
    }

    /// Looks up a name, now or when it is its turn.
    func resolve(_ name: WatchedName, _ cause: NameResolution.Cause = .schedule) {
        let isChanged = changedNames.remove(name.text) != nil
        names.request(name, isChanged && cause == .schedule ? .pathChange : cause, now: now)
        startLookups(now: now)
        for target in targets(of: name) { wakeUps.set(target, to: target.nextDue) }
    }

    /// Starts the lookups whose turn it is.
    func startLookups(now: BootInstant) {
        while let name = names.takeNext(now: now) { start(name.resolution.begin(), of: name) }
    }

    private func targets(of name: WatchedName) -> [WatchedTarget] { name.targets.compactMap { targets[$0] } }

    private func start(_ lookup: NameResolution.Lookup, of name: WatchedName) {
        watchResolverConfiguration()
        statistics.nameLookups += 1
        names.start(name) { [weak self, text = name.text] outcome in
            guard let self else { return }
            loop.execute(on: self) { $0.resolved(text, lookup, outcome) }
        }
    }

    private func watchResolverConfiguration() {
        names.watchConfiguration {
            ResolverConfigurationWatch(loop: loop, paths: configuration.resolverFiles) { [weak self] in
                self?.perform { $0.resolveAll() }
            }
        }
    }

    private func resolved(_ text: String, _ lookup: NameResolution.Lookup, _ outcome: NameResolver.Outcome) {
        guard let name = names[text] else { return }
        let now = self.now
        let needsAnotherLookup = name.resolution.end(lookup, outcome, now: now, random: .random(in: 0...1))
        let targets = assignAddresses(of: name)
        refreshMarked(now: now, resolvesOnChange: false)
        updateStatuses(of: targets, now: now)
        if needsAnotherLookup { resolve(name, .pathChange) }
        finish()
    }

    /// Gives the targets of a name its addresses.
    ///
    /// - Parameter target: A target that is left out. Default: `nil`, none.
    /// - Returns: The targets, for ``updateStatuses(of:now:)``.
    func assignAddresses(of name: WatchedName, exceptTo target: WatchedTarget? = nil) -> [WatchedTarget] {
        let targets = targets(of: name).filter { $0 !== target }
        for target in targets { assign(name.resolution.addresses, to: target) }
        return targets
    }

    /// Updates the statuses of targets that have been given addresses.
    ///
    /// If an address must still be looked up, ``refreshMarked(_:now:resolvesOnChange:)`` updates the target after that:
    /// until then, the address may have the verdict on another port.
    func updateStatuses(of targets: [WatchedTarget], now: BootInstant) {
        for target in targets {
            target.isOverdue = addresses.book.isMarked(target.slots)
            if !target.isOverdue { updateStatus(of: target, now: now, resolvesOnChange: false) }
        }
    }
}

/// The watched names of a monitor, and the resources of their lookups: the resolver, the turns of the lookups, and
/// the watch of the resolver configuration.
///
/// Confined to the monitor's thread.
struct NameLookups {
    private let resolver: NameResolver
    private var turns: LookupTurns
    private let interval: Duration
    private var watched: [String: WatchedName] = [:]
    /// `nil` until the first lookup.
    private var configurationWatch: ResolverConfigurationWatch?

    /// - Parameters:
    ///   - perSecond: The maximum number of lookups per second.
    ///   - interval: The refresh interval of a name.
    init(_ resolver: NameResolver, perSecond: Int, interval: Duration) {
        self.resolver = resolver
        self.interval = interval
        turns = LookupTurns(perSecond: perSecond)
    }

    /// All watched names.
    var all: [WatchedName] { Array(watched.values) }

    /// The watched names whose addresses are not known.
    var withoutAddresses: some Sequence<String> {
        watched.lazy.filter { $0.value.resolution.addresses.isEmpty }.map(\.key)
    }

    /// Returns a watched name; `nil` if it is not watched.
    subscript(name: String) -> WatchedName? { watched[name] }

    /// Adds a target to its name.
    ///
    /// A name without addresses begins with those that the process's resolver knows. The name servers may be silent
    /// although there is a path to the host.
    ///
    /// - Returns: The name; `nil` if the target has none.
    mutating func add(_ target: WatchKey, now: BootInstant) -> WatchedName? {
        guard let text = target.name else { return nil }
        let name = watched[text] ?? WatchedName(NameResolution(name: text, interval: interval, now: now))
        watched[text] = name
        if name.resolution.addresses.isEmpty {
            name.resolution.begin(with: resolver.knownAddresses(of: text))
        }
        name.add(target)
        return name
    }

    /// Removes a target from its name. Ends the lookups of a name without targets.
    mutating func remove(_ target: WatchKey, from name: WatchedName) {
        guard name.remove(target) else { return }
        watched[name.text] = nil
        turns.remove(name.text)
        if let lookup = name.lookup { _ = resolver.abandon(lookup) }
    }

    /// Invalidates cached answers and lookups in progress, after a change of the network.
    func renew() { resolver.renew() }

    /// Requests a lookup of a name, which starts when it is its turn; see ``takeNext(now:)``.
    mutating func request(_ name: WatchedName, _ cause: NameResolution.Cause, now: BootInstant) {
        guard let kind = name.resolution.request(cause), turns.add(name.text, kind) else { return }
        if kind == .first, let start = turns.lastFirstStart(now: now) {
            name.resolution.noteFirstLookup(startsAt: start)
        }
    }

    /// Returns the next name whose lookup the caller must start now; `nil` if there is none.
    mutating func takeNext(now: BootInstant) -> WatchedName? {
        turns.takeNext(now: now).flatMap { watched[$0] }
    }

    /// Returns the time from which the next lookup may start; `nil` if no name waits for a lookup.
    func nextTurn(now: BootInstant) -> BootInstant? { turns.opening(now: now) }

    /// Starts a lookup of a name. Abandons an earlier one.
    ///
    /// - Parameter onEnd: Called once with the outcome, on any thread.
    func start(_ name: WatchedName, onEnd: @escaping @Sendable (NameResolver.Outcome) -> Void) {
        let earlier = name.lookup
        name.lookup = resolver.resolve(name.text, urgency: .refresh, completion: onEnd)
        if let earlier { _ = resolver.abandon(earlier) }
    }

    /// Starts watching the resolver configuration, unless that was started before. Needed from the first name lookup.
    mutating func watchConfiguration(_ make: () -> ResolverConfigurationWatch) {
        guard configurationWatch == nil else { return }
        let watch = make()
        configurationWatch = watch
        watch.start()
    }

    /// Tries again to watch the resolver's files if that failed before. Otherwise it has no effect.
    func retryWatchingConfiguration() { configurationWatch?.start() }
}
