internal import NetwatchEventLoop
internal import NetwatchNetlink

// Route lookups and the status changes that follow from them.
extension MonitorCore {
    func recompute(_ run: RecomputeSchedule.Run, now: ContinuousClock.Instant) {
        statistics.recomputations += 1
        book.mark(unanswered)
        unanswered = []
        if run == .everything {
            interfacesAreStale = true
            book.markEverything(deferred: true)
            // Has no effect unless it failed before.
            resolverConfiguration?.start()
        }
        refreshMarked(run, now: now)
    }

    /// Reads the interfaces again. If the machine's own addresses changed, names may resolve to other addresses.
    func readInterfaces() {
        snapshots.markStale()
        guard let reader = connection?.reader else { return }
        let before = reader.interfaces
        do {
            let reading = try reader.readInterfaces()
            statistics.malformed += reading.malformed
            interfacesAreStale = reading.isInterrupted
            if reading.isInterrupted { schedule.noteEvents(isOverrun: false, now: now) }
        } catch {
            disconnect(error)
        }
        // The kernel restores next hops over a link without a notification.
        if reader.interfaces.hasBetterLink(than: before) { book.markEverything() }
        if reader.interfaces.outboundSources != before.outboundSources { resolveAll() }
    }

    /// The number of addresses looked up in one turn of the loop, which takes about 1 ms. Confirming a hundred
    /// thousand addresses must not delay urgent ones.
    private static let sliceSize = 4 * PathReader.batchSize

    /// Looks up the marked addresses and updates the targets that use them.
    ///
    /// - Parameter resolvesAgain: Whether a changed path causes a new lookup of the name. `false` if a name lookup
    ///   caused the change.
    func refreshMarked(
        _ run: RecomputeSchedule.Run = .changed,
        now: ContinuousClock.Instant,
        resolvesOnChange: Bool = true
    ) {
        if interfacesAreStale { readInterfaces() }
        let marked = book.takeMarked(atMost: Self.sliceSize)
        var affected: [WatchedTarget] = []
        for start in stride(from: 0, to: marked.count, by: PathReader.batchSize) {
            let batch = marked[start..<min(start + PathReader.batchSize, marked.count)]
            for (entry, addressVerdict) in zip(batch, verdicts(on: batch)) {
                if isLate(entry.slot, run) { continue }
                guard book.update(entry.slot, addressVerdict, now: now) || isRevalidating else { continue }
                book.forEachWatcher(of: entry.slot) { target in
                    if !target.isAffected { affected.append(target) }
                    target.isAffected = true
                }
            }
        }
        statistics.lookups += marked.count
        for target in affected {
            target.isAffected = false
            updateStatus(of: target, now: now, resolvesOnChange: resolvesOnChange)
        }
        if book.hasMarks { scheduleRemainder(run) } else { isRevalidating = false }
    }

    /// Looks up the remaining addresses in the next turn of the loop.
    private func scheduleRemainder(_ run: RecomputeSchedule.Run) {
        guard !isRemainderScheduled else { return }
        isRemainderScheduled = true
        loop.execute { [weak self] in
            self?.assumeIsolated { core in
                core.isRemainderScheduled = false
                core.refreshMarked(run, now: core.now)
                core.finish()
            }
        }
    }

    private func verdicts(on marked: ArraySlice<AddressBook.Marked>) -> [AddressVerdict] {
        guard let reader = connection?.reader else {
            return verdictsWithoutNetlink(on: marked)
        }
        do {
            return try reader.lookUp(marked.map { ($0.address, $0.options) })
        } catch {
            // Retried like after an overrun, with increasing delays.
            schedule.noteEvents(isOverrun: true, now: now)
            unanswered += marked.map(\.slot)
            return marked.map { _ in AddressVerdict(.unknown(.lookupFailed)) }
        }
    }

    /// Looks up addresses by connected sockets, because netlink is unavailable.
    private func verdictsWithoutNetlink(on marked: ArraySlice<AddressBook.Marked>) -> [AddressVerdict] {
        do {
            return try loop.inNetworkNamespace { () throws(SystemError) in
                marked.map { ConnectLookup.verdict(on: $0.address, $0.options.options) }
            }
        } catch {
            return marked.map { _ in .noNetlink }
        }
    }

    private func isLate(_ slot: AddressBook.Slot, _ run: RecomputeSchedule.Run) -> Bool {
        configuration.faults.answersLate && run == .changed && book.verdict(at: slot) != nil
    }

    /// Updates a target from the verdicts on its addresses, and queues a new status for its subscribers.
    func updateStatus(of target: WatchedTarget, now: ContinuousClock.Instant, resolvesOnChange: Bool = true) {
        let generation = target.hold.published?.pathGeneration
        let status = target.update(verdict(on: target), now: now)
        target.expiryDue = target.slots.compactMap { book.expiry(at: $0) }.min()
        wakeUps.set(target, target.nextDue)
        guard let status else { return }
        for subscriber in target.subscribers { outbox.put(status, for: subscriber) }
        if resolvesOnChange, let generation, generation != status.pathGeneration {
            resolve(target, .pathChange)
        }
        if target === general {
            snapshots.markStale()
            updateUnresolved(now: now)
        }
    }

    private func updateUnresolved(now: ContinuousClock.Instant) {
        for target in targets.values where target.slots.isEmpty {
            updateStatus(of: target, now: now)
            resolve(target, .pathChange)
        }
    }

    private func verdict(on target: WatchedTarget) -> TargetVerdict {
        TargetVerdict(target.slots.compactMap { book.verdict(at: $0) }) ?? unresolved
    }

    /// The verdict for a name that was never resolved: not reachable if the network in general is not reachable,
    /// otherwise unknown.
    private var unresolved: TargetVerdict {
        if connection == nil { return TargetVerdict(.unknown(.noNetlink)) }
        let targetVerdict = TargetVerdict(general.slots.compactMap { book.verdict(at: $0) })
        if let targetVerdict, case .notReachable = targetVerdict.verdict { return targetVerdict }
        return TargetVerdict(.unknown(.unresolved))
    }

    /// Handles time that was not observed: every path is suspect, and everything is looked up again.
    func revalidate() {
        for target in targets.values { target.hold.suspectPath() }
        isRevalidating = true
        interfacesAreStale = true
        book.markEverything()
        refreshMarked(now: now)
        resolveAll()
        finish()
    }
}
