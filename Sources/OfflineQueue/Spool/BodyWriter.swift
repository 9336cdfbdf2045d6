internal import Dispatch
package import Foundation

/// Writes a body to the spool in pieces. Releasing the last reference discards an unfinished body.
///
/// Calls take effect in the order in which they are made. An error discards the body.
package final class BodyWriter: Sendable {
    private let body: PartialBody
    /// The serial queue for the disk operations of this body.
    private let queue = DispatchQueue(label: "netwatch.spool.body")

    init(_ body: PartialBody) {
        self.body = body
    }

    deinit {
        queue.async { [body] in body.discard() }
    }

    /// Appends bytes to the body.
    ///
    /// - Throws: ``QueueError``: `bodyTooLarge` if the body exceeds its limit, `insufficientSpace`, `spoolFailed`, or
    ///   `stopped` if the body was already finished or discarded.
    package func append(
        _ bytes: Data,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) {
        try await queue.run { [body] () throws(QueueError) in try body.append(bytes) }
    }

    /// Finishes the body. When this returns, the body is durable.
    ///
    /// - Throws: ``QueueError``: `insufficientSpace`, `spoolFailed`, or `stopped` if the body was already finished or
    ///   discarded.
    package func finish(
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) -> SpooledBody {
        try await queue.run { [body] () throws(QueueError) in try body.finish() }
    }

    /// Discards the body and removes its file. Has no effect on a finished body.
    package func discard() async {
        await queue.run { [body] in body.discard() }
    }
}

extension PartialBody {
    func append(_ bytes: Data) throws(QueueError) {
        // `withUnsafeBytes` rethrows errors without their type, so the error is passed through a variable.
        var failure: QueueError?
        bytes.withUnsafeBytes { bytes in
            do throws(QueueError) { try append(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
