internal import NetwatchEventLoop

// Looks up the names of watched targets.
extension MonitorCore {
    /// Looks up all names again after a change of the network or of the resolver configuration.
    ///
    /// Names that are not reachable come first, because the budget delays the later ones.
    func resolveAll() {
        resolver.renew()
        let names = targets.values.filter { $0.name != nil }
        for isReachable in [false, true] {
            for target in names where (target.name?.resolution.isReachable == true) == isReachable {
                resolve(target, .networkChange)
            }
        }
    }

    /// Looks up the name of a target, now or when the budget allows it. Has no effect for an address or the general
    /// target.
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
            // The result is handled in a later turn of the loop: for `localhost`, the resolver calls this closure
            // before `resolve` returns.
            loop.execute { self.assumeIsolated { $0.resolved(key, lookup, outcome) } }
        }
        if let earlier { _ = resolver.abandon(earlier) }
    }

    /// Starts watching the resolver configuration, unless that was started before. Needed from the first name lookup.
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
