internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// A request of a session that a queue takes over. The call stores the request, waits until it has finished in the
/// queue, and then finishes it in the session.
///
/// The session's request may end earlier, because the program cancels it or releases its session. If it ends before
/// ``FailedRequest/reportQueued(_:abandonedWith:)``, it is not kept in the queue, unless the queue already knew its id.
final class QueuedCall: Sendable {
    private let failed: FailedRequest
    private let queue: OfflineQueue
    private let batcher: EnqueueBatcher
    private let options: OfflineOptions
    private let maximumDataBytes: Int
    private let id: String

    init(
        _ failed: FailedRequest,
        _ queue: OfflineQueue,
        _ batcher: EnqueueBatcher,
        _ options: OfflineOptions,
        maximumDataBytes: Int
    ) {
        self.failed = failed
        self.queue = queue
        self.batcher = batcher
        self.options = options
        self.maximumDataBytes = maximumDataBytes
        id = options.enqueue.id ?? UUIDv7.make()
    }

    // MARK: Storing

    /// Begins to store the request. Requests whose bodies are at hand are stored in the order of these calls.
    func start() {
        do {
            // Checked before the body is read, because a stream can be read only once.
            let (original, hasCredential) = (failed.original, failed.hasCredential)
            if let refusal = options.refusal(of: original, hasCredential: hasCredential) { throw refusal }
            switch failed.takeBody() {
            case .data(let data): try add(.data(data))
            case .file(let url): try add(.file(path: url.path))
            case .reader(let reader): spool(reader)
            case .consumed: throw QueueError.streamConsumed
            }
        } catch {
            refuse(error)
        }
    }

    private func spool(_ reader: any BlockingReader) {
        let task = Task {
            do {
                try add(try await OfferedBodyIntake(queue).spooled(reader))
            } catch {
                refuse(error)
            }
        }
        // The failed request retains this closure, so it must not retain the failed request.
        failed.whenWithdrawn { _ in task.cancel() }
    }

    private func add(_ body: QueueRequest.Body) throws(QueueError) {
        var enqueue = options.enqueue
        enqueue.id = id
        if enqueue.httpVersion == nil { enqueue.httpVersion = failed.httpVersion }
        let entry = EnqueueBatcher.Entry(
            id: id,
            request: try QueueRequest(failed.original, body: body),
            options: enqueue,
            responseLimit: maximumDataBytes,
            isWanted: { [failed] in failed.withdrawal == nil },
            finished: { result in Task { await self.stored(result, body) } }
        )
        batcher.add(entry, to: queue)
    }

    private func stored(_ result: Result<Receipt, any Error>, _ body: QueueRequest.Body) async {
        switch result {
        case .success(let receipt) where receipt.outcome == .dropped: refuse(QueueError.droppedNewest)
        case .success(let receipt):
            if failed.reportQueued(receipt, abandonedWith: QueueError.leftToQueue(id)) {
                await waitForEnd()
                if failed.withdrawal == .cancelled, !options.isDetached { await withdraw(receipt) }
            } else {
                // The request ended in the session while it was being stored. An attempt of the queue may already be in
                // flight.
                await withdraw(receipt)
            }
        case .failure(let error):
            if case .staged(let name, _) = body { _ = try? await queue.removeStagedBody(name) }
            refuse(error)
        }
        _ = await queue.takeResponse(to: id)
    }

    /// Cancels the stored request in the queue, unless another call added it: the queue may have known an id that the
    /// program has chosen.
    private func withdraw(_ receipt: Receipt) async {
        guard receipt.isNew || options.enqueue.id == nil else { return }
        _ = try? await queue.edit(.withdraw, [id])
    }

    private func refuse(_ error: any Error) { failed.refuse(error) }

    // MARK: Finishing

    private func waitForEnd() async {
        let wait = Task {
            while !Task.isCancelled, await !self.finishIfEnded() {}
        }
        failed.whenWithdrawn { _ in wait.cancel() }
        await wait.value
    }

    /// Waits for the end in the queue and finishes the session's request. Returns `false` if it must wait again,
    /// because the store could not be read.
    private func finishIfEnded() async -> Bool {
        try? await queue.waitUntilFinished(id, within: nil)
        guard failed.withdrawal == nil else { return true }
        if let conclusion = await queue.takeResponse(to: id) {
            finish(conclusion)
            return true
        }
        do {
            guard let details = try await queue.request(id) else {
                failed.fail(with: QueueError.cancelled(id, "the queue no longer has the request"))
                return true
            }
            if details.summary.state.isFinal {
                finish(details)
                return true
            }
        } catch {
            if await queue.isOpen { try? await Task.sleep(for: .seconds(1)) }
        }
        guard await !queue.isOpen else { return false }
        failed.fail(with: QueueError.leftToQueue(id))
        return true
    }

    /// Finishes the session's request with the outcome of an attempt that this process made.
    private func finish(_ conclusion: AwaitedResponse.Conclusion) {
        switch conclusion.verdict {
        case .delivered(let status): deliver(conclusion.response, status, limit: maximumDataBytes)
        case .dead(_, let reason): giveUp(reason, conclusion.response)
        case .retry, .held: failed.fail(with: QueueError.leftToQueue(id))
        }
    }

    /// Finishes the session's request with the outcome that the queue has stored.
    private func finish(_ details: RequestDetails) {
        let summary = details.summary
        switch summary.state {
        case .delivered:
            deliver(details.response, summary.status ?? 200, limit: Attempt.maximumResponseBytes)
        case .dead: giveUp(summary.lastError ?? "the queue gave the request up", details.response)
        case .superseded:
            failed.fail(
                with: QueueError.cancelled(id, "a newer request with the same replace key replaced it")
            )
        case .cancelled, .pending, .blocked, .inflight, .held:
            failed.fail(with: QueueError.cancelled(id))
        }
    }

    /// - Parameters:
    ///   - response: The response; `nil` if it was lost after its status.
    ///   - limit: The maximum number of body bytes that were kept.
    private func deliver(_ response: RecordedResponse?, _ status: Int, limit: Int) {
        let known =
            response ?? RecordedResponse(status: status, headers: [], body: Data(), isTruncated: true)
        guard let owned = ownerResponse(known) else {
            return failed.fail(with: URLError(.badURL, message: "the request has no URL"))
        }
        let cut =
            known.body.count >= limit
            ? URLError(.dataLengthExceedsMaximum, message: "the response has more than \(limit) bytes")
            : URLError(
                .networkConnectionLost,
                message: "the connection ended before the response was complete"
            )
        failed.finish(with: owned, error: known.isTruncated ? cut : nil)
    }

    private func giveUp(_ reason: String, _ response: RecordedResponse?) {
        let error = QueueError.dead(id, reason)
        guard let response = response.flatMap(ownerResponse) else { return failed.fail(with: error) }
        failed.finish(with: response, error: error)
    }

    private func ownerResponse(_ response: RecordedResponse) -> OwnerResponse? {
        guard let url = failed.original.url else { return nil }
        let headers = response.headers.map { TransferRequest.Header($0.name, $0.value) }
        return OwnerResponse(
            url: url,
            head: TransferHead(status: response.status, version: "HTTP/1.1", headers: headers),
            body: response.body
        )
    }
}

extension QueueError {
    fileprivate static var streamConsumed: QueueError {
        QueueError(
            .bodyUnavailable,
            "the request's body stream was read by an earlier attempt and cannot be sent again"
        )
    }

    fileprivate static var droppedNewest: QueueError {
        QueueError(.queueFull, "the queue or the lane is full, and `whenFull` is `dropNewest`")
    }
}

/// Takes a body that can be read only once into a queue's spool.
struct OfferedBodyIntake {
    private static let pieceSize = 256 * 1024

    private let queue: OfflineQueue
    private let name = "stream-\(UUIDv7.make())"

    init(_ queue: OfflineQueue) {
        self.queue = queue
    }

    /// Reads the body and adds it to the queue's spool.
    ///
    /// - Throws: ``QueueError``, as ``OfflineQueue/appendToBody(_:_:at:for:)`` does. The error of the reader.
    func spooled(_ reader: any BlockingReader) async throws -> QueueRequest.Body {
        let thread = DispatchQueue(label: "netwatch.queue.stream")
        var size: Int64 = 0
        do {
            while true {
                let piece = try await thread.run { try Self.read(reader) }
                guard !piece.isEmpty else { break }
                try Task.checkCancellation()
                size = try await queue.appendToBody(name, piece, at: size)
            }
        } catch {
            _ = try? await queue.removeStagedBody(name)
            throw error
        }
        return size == 0 ? .data(Data()) : .staged(id: name, size: size)
    }

    private static func read(_ reader: any BlockingReader) throws -> Data {
        var piece = Data(count: pieceSize)
        let count = try piece.withUnsafeMutableBytes { try reader.read(into: $0) }
        return piece.prefix(count)
    }
}
