internal import Dispatch
package import Foundation

/// Writes a body in pieces. Releasing the last reference discards an unfinished body.
///
/// Calls run in the order in which they were made. After an error the body is discarded.
package final class BodyWriter: Sendable {
    private let body: PartialBody
    /// The queue for blocking disk operations.
    private let queue = DispatchQueue(label: "netwatch.spool.body")

    init(_ body: PartialBody) {
        self.body = body
    }

    deinit {
        queue.async { [body] in body.discard() }
    }

    /// Appends bytes.
    ///
    /// - Throws: ``QueueError``: `bodyTooLarge` beyond the limit, `insufficientSpace`, `spoolFailed`, or `stopped` when
    ///   the body was finished or discarded before.
    package func append(
        _ bytes: Data,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) {
        try await queue.run { [body] () throws(QueueError) in try body.append(bytes) }
    }

    /// Finishes the body. When this returns, the body is durable until it is removed.
    ///
    /// - Throws: As ``append(_:)``.
    package func finish(
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) -> SpooledBody {
        try await queue.run { [body] () throws(QueueError) in try body.finish() }
    }

    /// Removes what was written, unless the body is finished.
    package func discard() async {
        await queue.run { [body] in body.discard() }
    }
}

extension PartialBody {
    func append(_ bytes: Data) throws(QueueError) {
        // Data may consist of several regions.
        var failure: QueueError?
        bytes.withUnsafeBytes { bytes in
            do throws(QueueError) { try append(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
