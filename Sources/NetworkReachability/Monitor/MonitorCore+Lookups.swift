internal import NetwatchEventLoop
internal import NetwatchNetlink

// What is looked up, and what follows from it.
extension MonitorCore {
    func recompute(_ run: RecomputeSchedule.Run, now: ContinuousClock.Instant) {
        statistics.recomputations += 1
        if run == .everything {
            interfacesAreStale = true
            book.markEverything(patiently: true)
            // Does nothing unless it failed before.
            resolverConfiguration?.start()
        }
        let isOtherNetwork = interfacesAreStale && readInterfaces()
        lookUpWhatIsMarked(run, now: now)
        // Names may have other addresses where the machine is connected otherwise.
        if isOtherNetwork { resolveAll() }
    }

    /// Reads the interfaces anew. Returns whether the machine is connected otherwise than before.
    private func readInterfaces() -> Bool {
        snapshotIsStale = true
        guard let reader = connection?.reader else { return false }
        let before = reader.interfaces
        do {
            let reading = try reader.readInterfaces()
            statistics.malformed += reading.malformed
            interfacesAreStale = reading.isInterrupted
            if reading.isInterrupted { schedule.noteEvents(isOverrun: false, now: now) }
        } catch {
            disconnect(error)
        }
        // The kernel revives next hops over it without a word.
        if reader.interfaces.hasBetterLink(than: before) { book.markEverything() }
        return reader.interfaces.waysOut != before.waysOut
    }

    /// How many addresses are looked up in one turn of the loop, about 1 ms: making sure of a hundred thousand
    /// must not keep what is urgent waiting.
    private static let sliceSize = 4 * PathReader.batchSize

    /// Looks up the addresses that may have changed, and tells those who watch what did.
    func lookUpWhatIsMarked(_ run: RecomputeSchedule.Run = .changed, now: ContinuousClock.Instant) {
        let marked = book.takeMarked(atMost: Self.sliceSize)
        var concerned: [WatchedTarget] = []
        for start in stride(from: 0, to: marked.count, by: PathReader.batchSize) {
            let batch = marked[start..<min(start + PathReader.batchSize, marked.count)]
            for (entry, judgement) in zip(batch, judgements(on: batch.map { ($0.address, $0.options) })) {
                if isLate(entry.slot, run) { continue }
                guard book.update(entry.slot, judgement, now: now) else { continue }
                book.forEachWatcher(of: entry.slot) { target in
                    if !target.isConcerned { concerned.append(target) }
                    target.isConcerned = true
                }
            }
        }
        statistics.lookups += marked.count
        for target in concerned {
            target.isConcerned = false
            judge(target, now: now)
        }
        if book.hasMarks { goOn(run) }
    }

    /// Looks up the rest in the next turn of the loop.
    private func goOn(_ run: RecomputeSchedule.Run) {
        guard !isGoingOn else { return }
        isGoingOn = true
        loop.execute { [weak self] in
            self?.assumeIsolated { core in
                core.isGoingOn = false
                core.lookUpWhatIsMarked(run, now: core.now)
                core.finish()
            }
        }
    }

    private func judgements(on addresses: [(IPAddress, SparseOptions)]) -> [Judgement] {
        guard let reader = connection?.reader else {
            return addresses.map { ConnectOracle.judge($0.0, $0.1.options) }
        }
        do {
            return try reader.judge(addresses)
        } catch {
            // As after an overrun, it is tried again and again, ever more slowly.
            schedule.noteEvents(isOverrun: true, now: now)
            return addresses.map { _ in Judgement(.unknown(.lookupFailed)) }
        }
    }

    private func isLate(_ slot: AddressBook.Slot, _ run: RecomputeSchedule.Run) -> Bool {
        configuration.faults.answersLate && run == .changed && book.verdict(at: slot) != nil
    }

    /// Draws the conclusion for a target from what is known of its addresses, and tells its subscribers of a
    /// new status.
    func judge(_ target: WatchedTarget, now: ContinuousClock.Instant) {
        let generation = target.hold.published?.pathGeneration
        let status = target.update(finding(on: target), now: now)
        target.expiryDue = target.slots.compactMap { book.expiry(at: $0) }.min()
        wakeUps.set(target, target.nextDue)
        guard let status else { return }
        // From a copy: a subscriber may come back here.
        for subscriber in target.subscribers { subscriber.deliver(status) }
        if let generation, generation != status.pathGeneration { resolve(target, afterPathChange: true) }
        if target === general {
            snapshotIsStale = true
            judgeUnresolved(now: now)
        }
    }

    private func judgeUnresolved(now: ContinuousClock.Instant) {
        for target in targets.values where target.slots.isEmpty {
            judge(target, now: now)
            resolve(target, afterPathChange: true)
        }
    }

    private func finding(on target: WatchedTarget) -> Finding {
        Finding(target.slots.compactMap { book.verdict(at: $0) }) ?? unresolved
    }

    /// A name that never resolved is out of reach when everything is; otherwise it cannot be told.
    private var unresolved: Finding {
        if connection == nil { return Finding(.unknown(.noNetlink)) }
        let way = Finding(general.slots.compactMap { book.verdict(at: $0) })
        if let way, case .notReachable = way.verdict { return way }
        return Finding(.unknown(.unresolved))
    }

    /// Time has passed that nobody saw: every path is suspect, and everything is looked up again.
    func renew() {
        let now = self.now
        for target in targets.values { target.hold.suspectPath() }
        recompute(.everything, now: now)
        for target in targets.values { judge(target, now: now) }
        resolveAll()
        finish()
    }
}
