internal import NetwatchEventLoop
internal import Synchronization

/// Reports changes to the files that configure name resolution.
///
/// Confined to the loop's thread, including the callback. The C library rereads the files by itself. The report is
/// needed because earlier lookup results become outdated.
actor ResolverConfigurationWatch {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The files of `resolv.conf(5)`, `hosts(5)`, `nsswitch.conf(5)` and `gai.conf(5)`.
    static let systemPaths = FileFingerprints.resolverPaths

    /// Why some or all changes cannot be noticed; `nil` if they can.
    nonisolated let failure = Mutex<SystemError?>(nil)

    /// The minimum time after a failure before ``start()`` tries again.
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
    ///   - paths: The files to watch. They need not exist yet.
    ///   - quietPeriod: How long there must be no changes before `onChange` is called. Default 100 ms, enough for a program
    ///     that writes several of the files.
    ///   - maxDelay: The maximum time between the first change and the call of `onChange`. Default 1 s.
    ///   - retryInterval: The minimum time after a failure before ``start()`` tries again. Default 60 s.
    ///   - makeInotify: Opens inotify; tests inject failures here.
    ///   - onChange: Called on the loop's thread.
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

    /// Starts watching; changes after the return are reported. Can be called from any thread; on the loop's thread it
    /// takes effect immediately.
    ///
    /// A failure is not fatal: see ``failure``, and call this method again later. Without a failure, calling it again
    /// has no effect.
    nonisolated func start() {
        loop.runAndWait { self.assumeIsolated { $0.open() } }
    }

    /// Opens inotify and the watches, again if something is not watched. A successful retry reports a change, because
    /// changes in between went unnoticed.
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
    /// Whether a change was noticed but not reported yet.
    var hasPendingChange: Bool { debounce.due != nil }
}
