internal import NetwatchEventLoop

/// The background tasks. ``start()`` starts them and ``stop()`` cancels them.
extension OfflineQueue {
    /// Passes lanes with new requests to the scheduler. It does not matter which caller enqueued the requests.
    func followChanges() async {
        while !Task.isCancelled {
            let lanes = await store.changes.next()
            guard !lanes.isEmpty else { return }
            announce(lanes)
        }
    }

    /// Gives up expired requests, removes old history and checks the free space of the disk: when the next request
    /// expires, and at least once a minute.
    func sweep() async {
        while !Task.isCancelled {
            do {
                let next = try await store.expire()
                capacityWaiters.changed()
                await checkDisk()
                await resolveFinished()
                await sweeper.pause(next)
            } catch {
                return failed(error)
            }
        }
    }

    /// Warns when the disk becomes full, and when it has much more space again: each delivery frees some, which the next
    /// request takes. If the space cannot be read now, the next sweep checks it.
    private func checkDisk() async {
        let needed = StoredBody.maximumInlineBytes * (isDiskFull ? 16 : 1)
        guard let isFull = try? await store.isDiskFull(forBody: needed), isFull != isDiskFull else { return }
        isDiskFull = isFull
        warn(
            isFull
                ? "the disk is full, so new requests are refused, large ones first; accepted ones are still sent"
                : "the disk has space again, so new requests are accepted"
        )
    }

    /// Removes the spool files that a crash left without a row.
    ///
    /// A file is removed only if neither the index nor the table has a row that refers to it, because a damaged index
    /// may miss rows. Usually the index finds a row for every file, and the tables are not read.
    ///
    /// If reading the tables finds damage, the store stops, as with every read. Other errors are ignored, because
    /// these files only take up space. The next start tries again.
    func sweepSpool() async {
        let (archive, spool) = (store.archive, store.spool)
        guard let found = try? await spool.orphans(keeping: { archive.isFileNamed($0) }), !found.isEmpty,
            let unused = try? await archive.unusedFiles(among: found)
        else { return }
        let removed = Set(unused)
        _ = try? await spool.sweep { !removed.contains($0) }
    }

    /// Encrypts the stored requests that are not encrypted with the current key, after a key was added. A pass leaves a
    /// request in flight, and a body for which the disk has no space, to the next pass. Passes are repeated until no
    /// request is left that can be encrypted.
    func reseal() async {
        var isReported = false
        while !Task.isCancelled {
            let pass = await resealOnce()
            guard !hasFailed, !Task.isCancelled else { return }
            if let problem = pass.problem, !isReported {
                warn("some stored requests are not encrypted with the current key: \(problem)")
            }
            isReported = pass.problem != nil
            guard pass.postponed > 0 else { return }
            try? await Task.sleep(for: configuration.resealInterval, clock: .continuous)
        }
    }

    /// Examines all stored requests once, and encrypts those that are not encrypted with the current key.
    ///
    /// - Returns: The end of the pass. An error that does not end the store ends only this pass.
    private func resealOnce() async -> ResealCursor {
        var place = ResealCursor()
        do {
            while !Task.isCancelled, let next = try await store.reseal(after: place) { place = next }
        } catch {
            failed(error)
            place.postponed += 1
            place.problem = place.problem ?? (error as? QueueError)?.message ?? "\(error)"
        }
        return place
    }

    /// Checks once a second whether a read has found damage, and whether the store's files were removed, moved or
    /// replaced. If so, stops sending.
    ///
    /// Each commit makes the same checks. Without this task, a queue that does not write would continue.
    func watchStore() async {
        while (try? await Task.sleep(for: .seconds(1), clock: .continuous)) != nil {
            do {
                try await store.check()
            } catch {
                return failed(error)
            }
        }
    }

    /// Scans the store at intervals, and warns about the first damage that a scan finds.
    func scanStore() async {
        await scanner.run { finding in
            await self.warn(
                "a scan of the queue has found damage: \(finding); `netwatch doctor` shows what to do"
            )
        }
    }
}
