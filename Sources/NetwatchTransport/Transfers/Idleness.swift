internal import CNetwatchCurl

/// Since when nothing has gone over the wire.
///
/// libcurl's own check (`CURLOPT_LOW_SPEED_TIME`) is one of speed: it ends a response that brings a few bytes every now and
/// then, and lets one that began fast be silent for longer. So the bytes are counted now and then instead.
struct Idleness {
    /// How often it is looked at. A silence may last so much longer before it is noticed, twice.
    static let interval = Duration.seconds(1)

    private var since = ContinuousClock.now
    private var bytes: Int64 = -1

    /// - Parameter bytes: How many have gone over the wire so far; `nil` while it does not count that none do.
    /// - Returns: Whether there was silence for that long.
    mutating func lasts(_ timeout: Duration, at now: ContinuousClock.Instant, bytes: Int64?) -> Bool {
        guard let bytes, bytes == self.bytes else {
            (since, self.bytes) = (now, bytes ?? -1)
            return false
        }
        return since.duration(to: now) >= timeout
    }
}

extension Transfer {
    /// Why it is to be ended; `nil` when it is not.
    func overrun(at now: ContinuousClock.Instant) -> String? {
        let awaited = awaitedAnswerTimeout
        if let timeout = awaited ?? request.idleTimeout, isIdle(for: timeout, at: now) {
            isAnswerLate = awaited != nil
            return isAnswerLate
                ? "no answer came within \(timeout) of the request"
                : "nothing was sent or received for \(timeout)"
        }
        return bodyIsLate(at: now) ? "the response took longer than \(request.bodyTimeout ?? .zero)" : nil
    }

    private func bodyIsLate(at now: ContinuousClock.Instant) -> Bool {
        guard let timeout = request.bodyTimeout, let headDelivered else { return false }
        return headDelivered.duration(to: now) >= timeout
    }

    /// How long the server may work on the answer without a word; `nil` while it is not the server's turn.
    private var awaitedAnswerTimeout: Duration? {
        request.responseTimeout.flatMap { isReady && isSent && !hasDeliveredHead ? $0 : nil }
    }

    /// Whether it has been silent for as long as it may be. Waiting for a source counts, a pause does not.
    private func isIdle(for timeout: Duration, at now: ContinuousClock.Instant) -> Bool {
        idleness.lasts(timeout, at: now, bytes: isReady && paused.isEmpty ? wireBytes : nil)
    }

    /// Of all heads and bodies, both ways.
    private var wireBytes: Int64 {
        Int64(easy.long(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
            + Int64(easy.long(CURLINFO_HEADER_SIZE)) + easy.offset(CURLINFO_SIZE_DOWNLOAD_T)
    }
}
