internal import NetwatchEventLoop

/// Reports changes to the files that configure name resolution.
///
/// The C library rereads the files by itself. The report is needed because the results of earlier lookups are
/// outdated after a change.
///
/// Confined to the loop's thread, which also calls the callback.
actor ResolverConfigurationWatch {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The paths of the files `resolv.conf(5)`, `hosts(5)`, `nsswitch.conf(5)` and `gai.conf(5)`.
    static let systemPaths = FileFingerprints.resolverPaths

    /// The error that prevents watching one or more of the files; `nil` if all files are watched.
    nonisolated let failure = Lock<SystemError?>(nil)

    /// The default of the minimum time between two attempts to watch the files: 60 s.
    static let retryInterval: Duration = .seconds(60)

    private let paths: [String]
    private let retryInterval: Duration
    private var retryDue: BootInstant?
    private let makeInotify: @Sendable () throws(SystemError) -> Inotify
    private let onChange: @Sendable () -> Void
    private var debounce: Debounce
    private var timer: EventLoop.Timer?
    private var watches: FileWatches?
    private var descriptorWatch: DescriptorWatch?

    /// - Parameters:
    ///   - paths: The files to watch. They need not exist yet.
    ///   - quietPeriod: The time without further changes after which `onChange` is called. Default: 100 ms, so that a
    ///     program that writes several of the files causes one call.
    ///   - maxDelay: The maximum time between the first change and the call of `onChange`. Default: 1 s.
    ///   - retryInterval: The minimum time after an attempt before ``start()`` tries again. Default: 60 s.
    ///   - makeInotify: Opens inotify. Tests inject failures here.
    ///   - onChange: Called on the loop's thread after one or more changes.
    init(
        loop: EventLoop,
        paths: [String] = systemPaths,
        quietPeriod: Duration = .milliseconds(100),
        maxDelay: Duration = .seconds(1),
        retryInterval: Duration = retryInterval,
        makeInotify: @escaping @Sendable () throws(SystemError) -> Inotify = Inotify.init,
        onChange: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.paths = paths
        self.retryInterval = retryInterval
        self.makeInotify = makeInotify
        self.onChange = onChange
        debounce = Debounce(quietPeriod: quietPeriod, maxDelay: maxDelay)
    }

    /// Starts watching. All changes after this method returns are reported.
    ///
    /// After an error, ``failure`` is set, and another call tries again. If there was no error, another call has no
    /// effect. Can be called from any thread.
    nonisolated func start() {
        loop.runAndWait { self.assumeIsolated { $0.open() } }
    }

    /// Opens inotify and watches the files. A retry after a failure does both again. A successful retry reports a
    /// change, because changes since the failure went unnoticed.
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
    /// Whether a change was noticed but not reported yet. For tests.
    var hasPendingChange: Bool { debounce.due != nil }
}
