/// Background tasks that run for as long as the queue.
extension OfflineQueue {
    /// Passes lanes with new work to the scheduler, whichever call or connection added it.
    func followChanges() async {
        while !Task.isCancelled {
            let lanes = await store.changes.next()
            guard !lanes.isEmpty else { return }
            announce(lanes)
        }
    }

    /// Expires requests and purges the history of finished ones, when the next one is due and at least once a minute.
    func sweep() async {
        while !Task.isCancelled {
            do {
                let next = try await store.expire()
                capacityWaiters.changed()
                await resolveFinished()
                await sweeper.pause(next)
            } catch {
                return failed(error)
            }
        }
    }

    /// Removes spool files that a crash left without a row. They only take up space, so files that cannot be removed
    /// now are left to the next start.
    func sweepSpool() async {
        let archive = store.archive
        _ = try? await store.spool.sweep { archive.isFileNamed($0) }
    }

    /// Stops the queue when the store's files were moved or replaced. Checked every second, because otherwise only
    /// writes would notice.
    func watchStore() async {
        while (try? await Task.sleep(for: .seconds(1), clock: .continuous)) != nil {
            do {
                try await store.check()
            } catch {
                return failed(error)
            }
        }
    }

    /// Renews the leases of requests in flight, if the store's leases expire. Cancels a transfer whose lease was lost,
    /// because another sender may have claimed its request.
    func keepLeases() async {
        guard let duration = store.leaseDuration else { return }
        while (try? await Task.sleep(for: duration / 4, clock: .continuous)) != nil {
            let lost = (try? await store.renew(Set(inflight.values.map(\.token)))) ?? []
            for attempt in inflight.values where lost.contains(attempt.token) { attempt.transfer.cancel() }
        }
    }
}
