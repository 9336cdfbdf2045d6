internal import NetwatchEventLoop

// Looks up the names of watched targets.
extension MonitorCore {
    /// Looks up all names again after a change of the network or of the resolver configuration.
    ///
    /// Names that are not reachable come first, because the budget delays the later ones.
    func resolveAll() {
        names.renew()
        let named = targets.values.filter { $0.name != nil }
        for isReachable in [false, true] {
            for target in named where (target.name?.resolution.isReachable == true) == isReachable {
                resolve(target, .networkChange)
            }
        }
    }

    /// Looks up the name of a target, now or when the budget allows it. Has no effect for a target that needs no
    /// lookup.
    func resolve(_ target: WatchedTarget, _ cause: NameResolution.Cause = .schedule) {
        guard let name = target.name else { return }
        let lookup = names.request(name, cause, now: now)
        if let lookup { start(lookup, of: name, target.key) }
        wakeUps.set(target, target.nextDue)
    }

    private func start(_ lookup: NameResolution.Lookup, of name: WatchedName, _ key: WatchKey) {
        watchResolverConfiguration()
        statistics.nameLookups += 1
        names.start(name) { [weak self] outcome in
            guard let self else { return }
            loop.execute(on: self) { $0.resolved(key, lookup, outcome) }
        }
    }

    private func watchResolverConfiguration() {
        names.watchConfiguration {
            ResolverConfigurationWatch(loop: loop, paths: configuration.resolverFiles) { [weak self] in
                self?.perform { $0.resolveAll() }
            }
        }
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
