internal import NetwatchEventLoop

// Name lookups for watched hosts.
extension MonitorCore {
    /// Resolves all names again after a change of the network or of the resolver configuration. Names that are not
    /// reachable come first.
    func resolveAll() {
        resolver.renew()
        let names = targets.values.filter { $0.name != nil }
        for isReachable in [false, true] {
            for target in names where (target.name?.resolution.isReachable == true) == isReachable {
                resolve(target, .networkChange)
            }
        }
    }

    /// Resolves the name of a target, now or when the budget allows it.
    func resolve(_ target: WatchedTarget, _ cause: NameResolution.Cause = .schedule) {
        guard let name = target.name else { return }
        let lookup = name.resolution.request(cause, budget: &lookupBudget, now: now)
        if let lookup { start(lookup, of: name, target.key) }
        wakeUps.set(target, target.nextDue)
    }

    private func start(_ lookup: NameResolution.Lookup, of name: WatchedName, _ key: WatchKey) {
        watchResolverConfiguration()
        statistics.nameLookups += 1
        let earlier = name.lookup
        name.lookup = resolver.resolve(name.resolution.name, urgency: .refresh) { [weak self] outcome in
            guard let self else { return }
            // Not immediately: the answer may be cached, and this turn is not finished yet.
            loop.execute { self.assumeIsolated { $0.resolved(key, lookup, outcome) } }
        }
        if let earlier { _ = resolver.abandon(earlier) }
    }

    /// Starts watching the resolver configuration when the first name is watched.
    private func watchResolverConfiguration() {
        guard resolverConfiguration == nil else { return }
        let watch = ResolverConfigurationWatch(loop: loop, paths: configuration.resolverFiles) {
            [weak self] in
            self?.perform { $0.resolveAll() }
        }
        resolverConfiguration = watch
        watch.start()
    }

    private func resolved(_ key: WatchKey, _ lookup: NameResolution.Lookup, _ outcome: NameResolver.Outcome) {
        guard let target = targets[key], let name = target.name else { return }
        let now = self.now
        let needsAnotherLookup = name.resolution.end(lookup, outcome, now: now, random: .random(in: 0...1))
        assign(name.resolution.addresses, to: target)
        refreshMarked(now: now, resolvesOnChange: false)
        updateStatus(of: target, now: now, resolvesOnChange: false)
        if needsAnotherLookup { resolve(target, .pathChange) }
        finish()
    }
}
