internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

// Looks up paths and updates the statuses of the targets.
extension MonitorCore {
    func recompute(_ run: RecomputeSchedule.Run, now: BootInstant) {
        statistics.recomputations += 1
        addresses.markUnanswered()
        if run != .changed {
            staleInterfaces.markEverything()
            addresses.markEverything(deferred: true)
            names.retryWatchingConfiguration()
        }
        refreshMarked(run, now: now)
    }

    /// Reads the stale interfaces and addresses again.
    ///
    /// If the addresses of this machine have changed, all names are looked up again, because a name server may be
    /// reachable now or answer differently. The first reading shows no change, and must not empty the cache of the
    /// process's resolver.
    ///
    /// - Parameter run: The recomputation to which the reading belongs. Default: not an audit.
    func readInterfaces(for run: RecomputeSchedule.Run = .changed) {
        snapshots.markStale()
        defer { distinguishPorts(run) }
        guard let reader = connection?.reader else { return }
        let before = reader.interfaces
        do {
            let reading = try reader.read(staleInterfaces)
            statistics.malformed += reading.malformed
            staleInterfaces = reading.interrupted
            if !staleInterfaces.isEmpty { schedule.noteEvents(isOverrun: false, now: now) }
            let (table, indices) = (reader.interfaces, reading.indices)
            // When a link gets its carrier back, the kernel makes its next hops usable again without a notification.
            if table.hasBetterLink(than: before, among: indices) { addresses.markEverything() }
            if !table.hasSameOutboundSources(as: before, among: indices) {
                hasOutboundSource = table.hasOutboundSource
                updateUnresolved(now: now)
                if hasReadInterfaces { resolveAll() }
            }
            hasReadInterfaces = true
        } catch {
            // While the process exits, the last statuses stay.
            if error.errno != ECANCELED { disconnect(error) }
        }
    }

    /// Gives each port of an address a lookup while a policy rule depends on the port, or may do so because the rules
    /// cannot be read.
    private func distinguishPorts(_ run: RecomputeSchedule.Run) {
        let dependsOnPorts = connection?.reader.dependsOnPorts ?? true
        let isEnabled = dependsOnPorts && !configuration.faults.ignoresPorts
        let moves = addresses.distinguishPorts(isEnabled, of: targets.values)
        for target in moves.targets { target.isOverdue = true }
        // If only an audit finds a rule, its lookups correct the verdicts that the addresses had before they moved.
        if !moves.targets.isEmpty { verdictsBeforeAudit = run == .audit ? moves.verdicts : [:] }
    }

    /// The maximum number of addresses that are looked up in one turn of the loop: 256, which takes about 1 ms.
    ///
    /// The rest waits for the next turn, so that confirming a hundred thousand addresses does not delay urgent ones.
    private static let sliceSize = 4 * PathReader.batchSize

    /// Looks up marked addresses, at most one slice, and updates their targets. The next turn continues with the rest.
    ///
    /// - Parameter resolvesOnChange: Whether a changed path causes a new lookup of the target's name. `false` if the
    ///   change results from a name lookup: some servers rotate their answers, and each would cause another lookup.
    func refreshMarked(
        _ run: RecomputeSchedule.Run = .changed,
        now: BootInstant,
        resolvesOnChange: Bool = true
    ) {
        if !staleInterfaces.isEmpty { readInterfaces(for: run) }
        let marked = addresses.takeMarked(atMost: Self.sliceSize)
        var affected: [WatchedTarget] = []
        var overdue: [WatchedTarget] = []
        for start in stride(from: 0, to: marked.count, by: PathReader.batchSize) {
            let batch = marked[start..<min(start + PathReader.batchSize, marked.count)]
            for (entry, addressVerdict) in zip(batch, verdicts(on: batch)) {
                let isChanged = !isLate(entry.slot, run) && update(entry, addressVerdict, run, now: now)
                let mustUpdate = isChanged || isRevalidating
                addresses.book.forEachWatcher(of: entry.slot) { target in
                    if target.isOverdue { overdue.append(target) }
                    guard mustUpdate, !target.isAffected else { return }
                    target.isAffected = true
                    affected.append(target)
                }
            }
        }
        statistics.lookups += marked.count
        for target in affected {
            target.isAffected = false
            updateStatus(of: target, now: now, resolvesOnChange: resolvesOnChange)
        }
        for target in overdue where target.isOverdue { handleDue(target, now: now) }
        if addresses.book.hasMarks { scheduleRemainder(run) } else { isRevalidating = false }
    }

    /// Schedules the lookup of the remaining marked addresses for the next turn of the loop.
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
            let verdicts = try reader.lookUp(marked.map { ($0.address, $0.options) })
            lookUpAgain(zip(marked, verdicts).filter(\.1.isShortage).map(\.0.slot))
            return verdicts
        } catch {
            lookUpAgain(marked.map(\.slot))
            return marked.map { _ in AddressVerdict(.unknown(.lookupFailed)) }
        }
    }

    /// Schedules another lookup of addresses after a delay. As for overruns, the delay increases with each consecutive
    /// failure.
    private func lookUpAgain(_ failed: [AddressBook.Slot]) {
        if failed.isEmpty { return }
        schedule.noteEvents(isOverrun: true, now: now)
        addresses.lookupFailed(failed)
    }

    /// Looks up addresses with ``ConnectLookup``, for use while netlink is unavailable.
    private func verdictsWithoutNetlink(on marked: ArraySlice<AddressBook.Marked>) -> [AddressVerdict] {
        do {
            return try loop.inNetworkNamespace { () throws(SystemError) in
                marked.map { ConnectLookup.verdict(on: $0.address, $0.options.options) }
            }
        } catch {
            return marked.map { _ in .noNetlink }
        }
    }

    /// Stores the verdict of a lookup. Returns whether it has changed.
    private func update(
        _ entry: AddressBook.Marked,
        _ addressVerdict: AddressVerdict,
        _ run: RecomputeSchedule.Run,
        now: BootInstant
    ) -> Bool {
        let isFirst = addresses.book.verdict(at: entry.slot) == nil
        let isChanged = addresses.update(entry.slot, addressVerdict, now: now)
        let before = verdictsBeforeAudit.removeValue(forKey: entry.slot)
        let isCorrected =
            before?.contains { $0 != addressVerdict.verdict } ?? (isChanged && entry.isConfirmation)
        // Without netlink, there are no notifications that could have found the change.
        if isCorrected, !isFirst, run == .audit, connection != nil {
            corrections.note(entry.slot, now: now)
        }
        return isChanged
    }

    /// Returns whether a test wants this verdict to be ignored; see ``MonitorFaults/answersLate``.
    private func isLate(_ slot: AddressBook.Slot, _ run: RecomputeSchedule.Run) -> Bool {
        configuration.faults.answersLate && run == .changed && addresses.book.verdict(at: slot) != nil
    }

    /// Updates a target from the verdicts on its addresses. Adds a new status to the outbox for its subscribers.
    func updateStatus(of target: WatchedTarget, now: BootInstant, resolvesOnChange: Bool = true) {
        let generation = target.hold.published?.pathGeneration
        let status = target.update(verdict(on: target), now: now)
        wakeUps.set(target, to: target.nextDue)
        guard let status else { return }
        if generation != nil { statistics.statusChanges += 1 }
        for subscriber in target.subscribers { outbox.put(status, for: subscriber) }
        if resolvesOnChange, let generation, generation != status.pathGeneration, let name = target.name {
            changedNames.insert(name.text)
        }
        if target === general {
            snapshots.markStale()
            updateUnresolved(now: now)
            changedNames.formUnion(names.withoutAddresses)
        }
    }

    /// Updates all names without addresses, because their status depends on the general target and on the addresses of
    /// this machine.
    private func updateUnresolved(now: BootInstant) {
        for target in targets.values where target.slots.isEmpty { updateStatus(of: target, now: now) }
    }

    private func verdict(on target: WatchedTarget) -> TargetVerdict {
        TargetVerdict(target.slots.compactMap { addresses.book.verdict(at: $0) }) ?? unresolved
    }

    /// The verdict on a name without known addresses. It is unknown if this machine can reach others, because the host
    /// may be on a network without a default route. Otherwise it is the verdict on the network in general.
    private var unresolved: TargetVerdict {
        if connection == nil { return TargetVerdict(.unknown(.noNetlink)) }
        if hasOutboundSource { return TargetVerdict(.unknown(.unresolved)) }
        let targetVerdict = TargetVerdict(general.slots.compactMap { addresses.book.verdict(at: $0) })
        if let targetVerdict, case .notReachable = targetVerdict.verdict { return targetVerdict }
        return TargetVerdict(.unknown(.unresolved))
    }

    /// Marks every path as suspect and looks up everything again, including names.
    ///
    /// Called after a suspension: existing connections may have died in the meantime.
    func revalidate() {
        for target in targets.values { target.hold.suspectPath() }
        isRevalidating = true
        staleInterfaces.markEverything()
        addresses.markEverything()
        refreshMarked(now: now)
        resolveAll()
        finish()
    }
}
