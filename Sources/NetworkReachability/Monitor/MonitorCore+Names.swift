internal import NetwatchEventLoop

// The names of watched hosts.
extension MonitorCore {
    func resolveAll() {
        for target in targets.values { resolve(target, afterPathChange: true) }
    }

    func resolve(_ target: WatchedTarget, afterPathChange: Bool = false) {
        guard target.resolution?.begin(afterPathChange: afterPathChange) == true else { return }
        startLookup(target.key)
    }

    private func startLookup(_ key: WatchKey) {
        guard let name = targets[key]?.resolution?.name else { return }
        watchResolverConfiguration()
        resolver.resolve(name, urgency: .refresh) { [weak self] outcome in
            guard let self else { return }
            // Not at once: the answer may be known, and this turn is not over yet.
            loop.execute { self.assumeIsolated { $0.resolved(key, outcome) } }
        }
    }

    /// From the first name on.
    private func watchResolverConfiguration() {
        guard resolverConfiguration == nil else { return }
        let watch = ResolverConfigurationWatch(loop: loop, paths: configuration.resolverFiles) {
            [weak self] in
            self?.perform { $0.resolveAll() }
        }
        resolverConfiguration = watch
        watch.start()
    }

    private func resolved(_ key: WatchKey, _ outcome: NameResolver.Outcome) {
        guard let target = targets[key] else { return }
        let now = self.now
        let mustStartAnother = target.resolution?.end(outcome, now: now) ?? false
        if mustStartAnother { startLookup(key) }
        rest(target, on: target.resolution?.addresses ?? [])
        lookUpWhatIsMarked(now: now, resolvesAgain: false)
        judge(target, now: now, resolvesAgain: false)
        finish()
    }
}
