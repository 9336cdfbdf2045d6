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
        for target in targets(of: name) { wakeUps.set(target, target.nextDue) }
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
