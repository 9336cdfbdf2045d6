internal import Foundation

/// Enqueuing requests. Most of it runs outside the actor, so that concurrent producers contend only for the disk.
extension OfflineQueue {
    /// Stores a request on disk. It is sent as soon as its lane allows.
    ///
    /// Cancelling the task has no effect, unless the call waits for room.
    ///
    /// - Throws: ``QueueError`` if the request is refused or cannot be written. After `storeFailed` and `storeUnusable`
    ///   it is unknown whether the request is on disk. If you chose its id yourself, enqueuing it again is safe.
    public nonisolated func enqueue(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions()
    ) async throws -> Receipt {
        let new = try NewRequest(request, options: options)
        return Receipt(try await accept([(new, request.body)])[0])
    }

    /// Stores several requests on disk in this order, all of them or none. They may depend on each other.
    ///
    /// - Throws: As ``enqueue(_:options:)``, and `cyclicDependency`.
    public nonisolated func enqueue(
        _ requests: [(request: QueueRequest, options: EnqueueOptions)]
    ) async throws -> [Receipt] {
        guard !requests.isEmpty else { return [] }
        let new = try requests.map { (try NewRequest($0.request, options: $0.options), $0.request.body) }
        return try await accept(new).map(Receipt.init)
    }

    /// Stores a request on disk, tries it immediately and returns the result of the first attempt.
    ///
    /// It is not tried, and the result says so, in these cases:
    /// - no slot is free, or its host is known to be unreachable;
    /// - its lane is paused, closed after failures, or FIFO with earlier requests;
    /// - it is scheduled for later or depends on other requests.
    ///
    /// Cancelling the task ends the wait; the request stays queued.
    ///
    /// - Throws: As ``enqueue(_:options:)``.
    public func send(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions()
    ) async throws -> SendResult {
        let new = try NewRequest(request, options: options)
        guard sendWaiters[new.id] == nil else {
            let accepted = try await accept([(new, request.body)])[0]
            return accepted.outcome == .dropped
                ? .dropped(id: new.id) : .queued(id: new.id, reason: .alreadyQueued)
        }
        // Registered before the request is written, because a claim in progress may take it before this task continues.
        sendWaiters[new.id] = SendWaiter()
        let accepted: EnqueuedRequest
        do {
            accepted = try await accept([(new, request.body)])[0]
        } catch {
            sendWaiters[new.id] = nil
            throw error
        }
        if let result = immediateResult(accepted) {
            sendWaiters[new.id] = nil
            return result
        }
        return await firstResult(accepted)
    }

    private nonisolated func accept(
        _ validated: [(request: NewRequest, body: QueueRequest.Body)]
    ) async throws -> [EnqueuedRequest] {
        var requests: [NewRequest] = []
        do {
            for (request, body) in validated {
                var request = request
                request.body = try await stored(body, of: request)
                requests.append(request)
            }
            let accepted = try await storeWhenCapacityAllows(requests)
            await discard(zip(requests, accepted).filter { $1.outcome != .accepted }.map(\.0))
            await follow(requests)
            return accepted
        } catch {
            // After a failed write it is unknown whether a row names the bodies; the next start finds out.
            if (error as? QueueError)?.endsStore != true { await discard(requests) }
            await failed(error)
            throw error
        }
    }

    private nonisolated func storeWhenCapacityAllows(_ requests: [NewRequest]) async throws
        -> [EnqueuedRequest]
    {
        while true {
            let (start, generation) = (ContinuousClock.now, capacityWaiters.generation)
            if store.spool.stagedBytes.count > 0 { try await removeStalledBodies(toFit: requests.size) }
            do {
                return try await store.enqueue(requests)
            } catch let error as QueueError where error.code == .queueFull && requests.waitForCapacity {
                // A queue without requests and uploads never frees room, so waiting would not end. But the room may
                // have become free just now.
                guard try await mayCapacityBeFreed() else { return try await store.enqueue(requests) }
                try await waitForCapacity(after: generation, start)
            }
        }
    }

    /// Waits for a change that may make room. An upload makes room when it is removed, and may be removed when it
    /// stalls.
    private nonisolated func waitForCapacity(after generation: Int, _ start: ContinuousClock.Instant)
        async throws
    {
        let stall = await staged.nextStall(after: start).map { stall in
            Task { [capacityWaiters] in
                try await Task.sleep(until: stall, clock: .continuous)
                capacityWaiters.changed()
            }
        }
        defer { stall?.cancel() }
        try await capacityWaiters.wait(after: generation)
    }

    private nonisolated func mayCapacityBeFreed() async throws -> Bool {
        if store.spool.stagedBytes.count > 0 { return true }
        let states = Set(QueuedRequest.State.allCases.filter { !$0.isFinal })
        return try await !store.page(RequestQuery(states: states, limit: 1)).requests.isEmpty
    }

    /// Updates other waits that the new requests may affect.
    private nonisolated func follow(_ requests: [NewRequest]) async {
        let shortest = requests.map(\.options.timeToLive).min() ?? .zero
        if shortest < Sweeper.longestPause { sweeper.shortenPause(to: shortest) }
        if requests.contains(where: { $0.options.replaceKey != nil || $0.options.whenFull == .dropOldest }) {
            await resolveFinished()
        }
    }
}

extension QueueRequest.Body {
    /// The length that the caller declared; `nil` for a file.
    fileprivate var declaredSize: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .staged(_, let size): size
        case .file: nil
        }
    }
}

extension [NewRequest] {
    fileprivate var size: Int64 { reduce(0) { $0 + $1.size } }
    fileprivate var waitForCapacity: Bool { contains { $0.options.whenFull == .block } }
}

extension Receipt {
    fileprivate init(_ accepted: EnqueuedRequest) {
        self.init(
            id: accepted.id,
            outcome: accepted.outcome,
            idempotencyKey: accepted.idempotencyKey,
            durability: accepted.durability
        )
    }
}

// MARK: - Bodies

extension OfflineQueue {
    /// Stores the body of a request. When a caller repeats an accepted request, its file may be gone, and the
    /// first call has used up its upload. Only the body's length, if known, is then compared with the stored request.
    private nonisolated func stored(
        _ body: QueueRequest.Body,
        of request: NewRequest
    ) async throws -> StoredBody {
        do {
            return try await stored(body)
        } catch let error as QueueError where [.bodyFileUnusable, .unknownStagedBody].contains(error.code) {
            guard request.options.id != nil, try await !store.archive.known([request.id]).isEmpty else {
                throw error
            }
            return .gone(size: body.declaredSize)
        }
    }

    private nonisolated func stored(_ body: QueueRequest.Body) async throws -> StoredBody {
        switch body {
        case .data(let data) where data.isEmpty: return .none
        case .data(let data) where data.count <= StoredBody.maximumInlineBytes: return .inline(data)
        case .data(let data):
            guard data.count <= QueueRequest.maximumBodyBytes else {
                let limit = QueueRequest.maximumBodyBytes
                throw QueueError(
                    .bodyTooLarge,
                    "the body has \(data.count) bytes; at most \(limit) are accepted"
                )
            }
            return .spooled(try await store.spool.store(data))
        case .file(let path):
            return .spooled(try await store.spool.copy(path: path, limit: QueueRequest.maximumBodyBytes))
        case .staged(let id, let size): return .spooled(try await finishBody(id, size: size))
        }
    }

    private nonisolated func discard(_ requests: [NewRequest]) async {
        let files = requests.compactMap { request -> String? in
            guard case .spooled(let body) = request.body else { return nil }
            return body.name
        }
        if !files.isEmpty { await store.spool.remove(files) }
    }
}
