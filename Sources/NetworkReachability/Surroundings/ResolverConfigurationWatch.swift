internal import NetwatchEventLoop
internal import Synchronization

/// Tells when the files changed that decide how names are resolved.
///
/// Confined to the loop's thread, like what it tells. The C library reads the files anew by itself; what was
/// resolved before is what a change makes old.
actor ResolverConfigurationWatch {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The files of `resolv.conf(5)`, `hosts(5)`, `nsswitch.conf(5)` and `gai.conf(5)`.
    static let systemPaths = FileFingerprints.resolverPaths

    /// What keeps changes from being noticed, or some of them; `nil` when nothing does.
    nonisolated let failure = Mutex<SystemError?>(nil)

    /// How long after a failure ``start()`` tries again at the earliest.
    static let retryInterval: Duration = .seconds(60)

    private let paths: [String]
    private let retryInterval: Duration
    private var retryDue: ContinuousClock.Instant?
    private let makeInotify: @Sendable () throws(SystemError) -> Inotify
    private let onChange: @Sendable () -> Void
    private var debounce: Debounce
    private var timer: EventLoop.Timer?
    private var watches: FileWatches?
    private var descriptorWatch: DescriptorWatch?

    /// - Parameters:
    ///   - paths: The files. Those that do not exist are waited for.
    ///   - quiet: How long nothing must have changed before `onChange` is called. Default 100 ms, in which a
    ///     program that writes several of them is done.
    ///   - longest: How long after the first change `onChange` is called at the latest. Default 1 s.
    ///   - retryInterval: How long after a failure ``start()`` tries again at the earliest. Default 60 s.
    ///   - makeInotify: Opens what reports; tests put failures here.
    ///   - onChange: Called on the loop's thread.
    init(
        loop: EventLoop,
        paths: [String] = systemPaths,
        quiet: Duration = .milliseconds(100),
        longest: Duration = .seconds(1),
        retryInterval: Duration = retryInterval,
        makeInotify: @escaping @Sendable () throws(SystemError) -> Inotify = Inotify.init,
        onChange: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.paths = paths
        self.retryInterval = retryInterval
        self.makeInotify = makeInotify
        self.onChange = onChange
        debounce = Debounce(quiet: quiet, longest: longest)
    }

    /// Begins to watch; what changes after the return is told. Callable from any thread; at once on the
    /// loop's. A failure is not fatal: see ``failure``, and call it again later, which does nothing unless
    /// there was one.
    nonisolated func start() {
        loop.runAndWait { self.assumeIsolated { $0.open() } }
    }

    /// Opens everything, anew if something is not watched. Whatever changed in between went unnoticed.
    private func open() {
        let isRetry = failure.withLock { $0 != nil }
        guard watches == nil || isRetry, retryDue.map({ $0 <= .now }) ?? true else { return }
        retryDue = .now + retryInterval
        do throws(SystemError) {
            let watches = FileWatches(paths, by: try makeInotify())
            descriptorWatch = try watch(watches.inotify)
            self.watches = watches
            note(watches.failure)
        } catch {
            return note(error)
        }
        if isRetry, failure.withLock({ $0 == nil }) { noteChange() }
    }

    private func watch(_ inotify: Inotify) throws(SystemError) -> DescriptorWatch {
        try DescriptorWatch(loop: loop, inotify.descriptor, of: inotify, for: .read) { [weak self] _ in
            self?.assumeIsolated { $0.receive() }
        }
    }

    private func note(_ error: SystemError?) {
        failure.withLock { $0 = error }
    }

    private func receive() {
        guard watches?.takeChanges() == true else { return }
        note(watches?.failure)
        noteChange()
    }

    private func noteChange() {
        debounce.note(at: .now)
        setTimer()
    }

    private func setTimer() {
        if let timer { loop.cancel(timer) }
        timer = debounce.due.map { due in
            loop.schedule(at: due) { [weak self] in self?.assumeIsolated { $0.report() } }
        }
    }

    private func report() {
        guard debounce.takeDue(at: .now) else { return setTimer() }
        timer = nil
        onChange()
    }
}

extension ResolverConfigurationWatch {
    /// Whether a change was noticed that is yet to be told.
    var hasNews: Bool { debounce.due != nil }
}
