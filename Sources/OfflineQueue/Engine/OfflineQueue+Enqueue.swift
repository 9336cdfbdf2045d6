internal import Foundation
internal import NetwatchEventLoop

/// Enqueuing. Most of the work runs outside the actor, so that concurrent producers wait only for the disk.
extension OfflineQueue {
    /// Stores a request on disk. The queue sends it as soon as its lane allows.
    ///
    /// ```swift
    /// let receipt = try await queue.enqueue(request, options: EnqueueOptions(lane: "readings", isFIFO: true))
    /// if receipt.isNew { print(receipt.id, receipt.idempotencyKey ?? "no key") }
    /// ```
    ///
    /// Cancelling the task has an effect only while the call waits for room (``FullQueuePolicy/block``).
    ///
    /// - Throws: ``QueueError`` if the request is refused or cannot be written. After `storeFailed` and `storeUnusable`
    ///   it is unknown whether the request is on disk. If you chose its id yourself, enqueuing it again is safe.
    ///   `CancellationError` if the task is cancelled while the call waits for room.
    public nonisolated func enqueue(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions()
    ) async throws -> Receipt {
        let new = try await validated(request, options)
        return Receipt(try await accept([(new, request.body)])[0])
    }

    /// Stores several requests on disk in the given order: all of them, or none if it throws. They may depend on each
    /// other.
    ///
    /// - Throws: The errors of ``enqueue(_:options:)``, and ``QueueError`` with `cyclicDependency`.
    public nonisolated func enqueue(
        _ requests: [(request: QueueRequest, options: EnqueueOptions)]
    ) async throws -> [Receipt] {
        guard !requests.isEmpty else { return [] }
        var new: [(NewRequest, QueueRequest.Body)] = []
        for (request, options) in requests {
            new.append((try await validated(request, options), request.body))
        }
        return try await accept(new).map(Receipt.init)
    }

    /// Validates a request. If its id is known, this call repeats an earlier one, which may have succeeded although its
    /// caller received no receipt. The times in the options are then checked as they were at the first call.
    private nonisolated func validated(
        _ request: QueueRequest,
        _ options: EnqueueOptions
    ) async throws -> NewRequest {
        do throws(QueueError) {
            return try NewRequest(request, options: options)
        } catch {
            guard error.code == .invalidOption, let id = options.id, let known = try await self.request(id)
            else { throw error }
            return try NewRequest(request, options: options, now: known.summary.created)
        }
    }

    /// Stores a request on disk, tries it immediately and returns the result of the first attempt.
    ///
    /// ```swift
    /// switch try await queue.send(request) {
    /// case .delivered(_, let status, let body): print(status, String(decoding: body, as: UTF8.self))
    /// case .queued(let id, let reason): print("\(id) waits: \(reason)")
    /// case .dead(let id, let reason): print("\(id) was given up: \(reason)")
    /// case .dropped: break  // only with `FullQueuePolicy.dropNewest`
    /// }
    /// ```
    ///
    /// In the following cases the request stays in the queue without an immediate attempt, and the result is
    /// ``SendResult/queued(id:reason:)`` with the reason:
    /// - the host is known to be unreachable;
    /// - a rate limit permits no request now, or the maximum number of requests in flight is still reached after 1 s;
    /// - the lane is paused, closed, or FIFO with earlier requests;
    /// - the request is scheduled for later or depends on other requests;
    /// - the queue already contains an unfinished request with this id, or is not running.
    ///
    /// Cancelling the task ends the wait, and the request stays in the queue.
    ///
    /// - Throws: The errors of ``enqueue(_:options:)``.
    public func send(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions()
    ) async throws -> SendResult {
        try await sendReportingOutcome(request, options: options).result
    }

    /// Sends a request as ``send(_:options:)`` does. Also returns whether the queue accepted it, dropped it, or already
    /// knew its id.
    package func sendReportingOutcome(
        _ request: QueueRequest,
        options: EnqueueOptions
    ) async throws -> (result: SendResult, outcome: Receipt.Outcome) {
        let new = try await validated(request, options)
        guard sendWaiters[new.id] == nil else {
            let accepted = try await accept([(new, request.body)])[0]
            let isDropped = accepted.outcome == .dropped
            return (
                isDropped ? .dropped(id: new.id) : .queued(id: new.id, reason: .alreadyQueued),
                accepted.outcome
            )
        }
        // The waiter is registered before the request is written, because a claim in progress may take the request
        // before this task continues.
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
            return (result, accepted.outcome)
        }
        return (await firstResult(accepted), accepted.outcome)
    }

    private nonisolated func accept(
        _ validated: [(request: NewRequest, body: QueueRequest.Body)]
    ) async throws -> [EnqueuedRequest] {
        var requests: [NewRequest] = []
        var held: [HeldBody] = []
        do {
            for (request, body) in validated {
                var request = request
                request.body = try await stored(body, of: request, &held)
                requests.append(request)
            }
            let accepted = try await storeWhenCapacityAllows(requests, &held)
            await release(held)
            await discard(zip(requests, accepted).filter { $1.outcome != .accepted }.map(\.0))
            await follow(requests)
            return accepted
        } catch {
            // After an error that ends the store, rows may refer to the bodies. The next start removes those that no
            // row refers to.
            if (error as? QueueError)?.endsStore != true { await discard(requests) }
            await release(held)
            await failed(error)
            throw error
        }
    }

    /// - Parameter held: The bodies of the requests that count against quotas. While a request waits, its body is one
    ///   of them.
    private nonisolated func storeWhenCapacityAllows(
        _ requests: [NewRequest],
        _ held: inout [HeldBody]
    ) async throws -> [EnqueuedRequest] {
        while true {
            let (start, generation) = (ContinuousClock.now, capacityWaiters.generation)
            if store.spool.stagedBytes.count > 0 { try await removeStalledBodies(toFit: requests.size) }
            do {
                return try await store.enqueue(requests)
            } catch let error as QueueError where error.isFull && requests.waitForCapacity {
                // If the queue has no requests and no uploads, none can end and free room, so the call must not wait.
                // It tries once more, because room may have been freed since the error.
                guard try await mayCapacityBeFreed() else { return try await store.enqueue(requests) }
                try await hold(requests, &held)
                try await waitForCapacity(after: generation, start)
            }
        }
    }

    /// Counts the bodies in the spool against the quotas of their users, so that a user cannot fill the disk with
    /// requests that wait for room. Uploads are counted already.
    private nonisolated func hold(_ requests: [NewRequest], _ held: inout [HeldBody]) async throws {
        let counted = Set(held.map(\.body.name))
        for request in requests {
            guard case .spooled(let body) = request.body, !counted.contains(body.name) else { continue }
            held.append(try await staged.hold(body, by: request.options.submitter))
        }
    }

    /// Waits for a change that may free room, or until the next upload stalls, because a stalled upload may be removed.
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

    /// Wakes the sweeper if a new request expires soon, and the callers whose requests the new ones may have replaced
    /// or dropped.
    private nonisolated func follow(_ requests: [NewRequest]) async {
        let shortest = requests.map(\.options.timeToLive).min() ?? .zero
        if shortest < Sweeper.longestPause { sweeper.shortenPause(to: shortest) }
        if requests.contains(where: { $0.options.replaceKey != nil || $0.options.whenFull == .dropOldest }) {
            await resolveFinished()
        }
    }
}

extension QueueRequest.Body {
    /// The length of the body, if it is known without the file or the upload; `nil` for a file.
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
    /// Stores the body of a request.
    ///
    /// When a caller enqueues an accepted request again, its file may be gone, and its upload was used by the first
    /// call. The result is then ``StoredBody/gone(size:)``, and at most the length of the body is compared with the
    /// stored request.
    ///
    /// - Parameter held: If the body is an upload, it is appended to this array. The caller must release it.
    private nonisolated func stored(
        _ body: QueueRequest.Body,
        of request: NewRequest,
        _ held: inout [HeldBody]
    ) async throws -> StoredBody {
        do {
            return try await stored(body, by: request.options.submitter, &held)
        } catch let error as QueueError where [.bodyFileUnusable, .unknownStagedBody].contains(error.code) {
            guard request.options.id != nil, try await !store.archive.known([request.id]).isEmpty else {
                throw error
            }
            return .gone(size: body.declaredSize)
        }
    }

    private nonisolated func stored(
        _ body: QueueRequest.Body,
        by submitter: Submitter?,
        _ held: inout [HeldBody]
    ) async throws -> StoredBody {
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
        case .staged(let id, let size):
            let upload = try await finishBody(id, size: size, by: submitter)
            held.append(upload)
            return .spooled(upload.body)
        }
    }

    private nonisolated func release(_ held: [HeldBody]) async {
        if !held.isEmpty { await staged.release(held) }
    }

    private nonisolated func discard(_ requests: [NewRequest]) async {
        let files = requests.compactMap { request -> String? in
            guard case .spooled(let body) = request.body else { return nil }
            return body.name
        }
        if !files.isEmpty { await store.spool.remove(files) }
    }
}
