/// What goes on for as long as the queue runs.
extension OfflineQueue {
    /// Hears of lanes that got something to do, whoever gave it to them.
    func followChanges() async {
        while !Task.isCancelled {
            let lanes = await store.changes.next()
            guard !lanes.isEmpty else { return }
            announce(lanes)
        }
    }

    /// Gives up what has lived too long and forgets what is over, when something is due and now and then.
    func sweep() async {
        while !Task.isCancelled {
            do {
                let next = try await store.expire()
                room.changed()
                await answerWithoutAttempt()
                await sweeper.pause(next)
            } catch {
                return failed(error)
            }
        }
    }

    /// Removes files of the spool that a crash left without a row. Only room is at stake, so what cannot be done now
    /// is left to the next start.
    func sweepSpool() async {
        let archive = store.archive
        _ = try? await store.spool.sweep { archive.isFileNamed($0) }
    }

    /// Ends the queue when its store is not where it was, also while nothing is written.
    func watchStore() async {
        while (try? await Task.sleep(for: .seconds(1), clock: .continuous)) != nil {
            do {
                try await store.check()
            } catch {
                return failed(error)
            }
        }
    }

    /// Renews the leases of what is being sent, where leases end by themselves. A transfer whose lease was lost
    /// is somebody else's by now.
    func keepLeases() async {
        guard let duration = store.leaseDuration else { return }
        while (try? await Task.sleep(for: duration / 4, clock: .continuous)) != nil {
            let lost = (try? await store.renew(Set(inflight.values.map(\.token)))) ?? []
            for attempt in inflight.values where lost.contains(attempt.token) { attempt.transfer.cancel() }
        }
    }
}
