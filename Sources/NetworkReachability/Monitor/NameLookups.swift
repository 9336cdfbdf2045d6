internal import NetwatchEventLoop

/// The resources of a monitor's name lookups: the resolver, the limit on refreshes, and the watch of the resolver
/// configuration.
///
/// Confined to the monitor's thread.
struct NameLookups {
    private let resolver: NameResolver
    private var budget: LookupBudget
    /// `nil` until the first lookup.
    private var configurationWatch: ResolverConfigurationWatch?

    /// - Parameter perSecond: The maximum number of refreshes per second.
    init(_ resolver: NameResolver, perSecond: Int) {
        self.resolver = resolver
        budget = LookupBudget(perSecond: perSecond)
    }

    /// Invalidates cached answers and lookups in progress, after a change of the network.
    func renew() { resolver.renew() }

    /// Returns the addresses of a name that the resolver still knows; empty if it knows none.
    func knownAddresses(of name: WatchedName) -> [IPAddress] {
        resolver.knownAddresses(of: name.resolution.name)
    }

    /// Requests a lookup of a name.
    ///
    /// - Returns: The lookup to start now; `nil` if none is needed or if the budget delays it.
    mutating func request(
        _ name: WatchedName,
        _ cause: NameResolution.Cause,
        now: BootInstant
    ) -> NameResolution.Lookup? {
        name.resolution.request(cause, budget: &budget, now: now)
    }

    /// Starts a lookup of a name. Abandons an earlier one.
    ///
    /// - Parameter onEnd: Called once with the outcome, on any thread.
    func start(_ name: WatchedName, onEnd: @escaping @Sendable (NameResolver.Outcome) -> Void) {
        let earlier = name.lookup
        name.lookup = resolver.resolve(name.resolution.name, urgency: .refresh, completion: onEnd)
        if let earlier { _ = resolver.abandon(earlier) }
    }

    /// Abandons the lookup of a name that is no longer watched.
    func abandon(_ name: WatchedName) {
        if let lookup = name.lookup { _ = resolver.abandon(lookup) }
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
