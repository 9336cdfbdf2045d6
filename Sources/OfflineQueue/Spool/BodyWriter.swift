internal import Dispatch
package import Foundation

/// Takes a body piece by piece. Dropping the last reference gives the body up.
///
/// Calls take their turns in the order in which they were made. After an error the body is given up.
package final class BodyWriter: Sendable {
    private let body: PartialBody
    /// Where the disk is waited for.
    private let queue = DispatchQueue(label: "netwatch.spool.body")

    init(_ body: PartialBody) {
        self.body = body
    }

    deinit {
        queue.async { [body] in body.giveUp() }
    }

    /// Writes bytes behind what is there.
    ///
    /// - Throws: ``QueueError``: `bodyTooLarge` beyond the limit, `insufficientSpace`, `spoolFailed`, or
    ///   `stopped` when the body was finished or given up before.
    package func append(
        _ bytes: Data,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) {
        try await queue.run { [body] () throws(QueueError) in try body.append(bytes) }
    }

    /// Ends the body. When this returns it is there for good, until it is removed.
    ///
    /// - Throws: As ``append(_:)``.
    package func finish(
        isolation: isolated (any Actor)? = #isolation
    ) async throws(QueueError) -> SpooledBody {
        try await queue.run { [body] () throws(QueueError) in try body.finish() }
    }

    /// Removes what was written, unless the body is finished.
    package func giveUp() async {
        await queue.run { [body] in body.giveUp() }
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
