internal import CNetwatchCurl

/// Measures how long no bytes were sent or received.
///
/// libcurl's own check (`CURLOPT_LOW_SPEED_TIME`) measures speed. It aborts a response that delivers a few bytes from
/// time to time, and it tolerates a longer silence after a fast start. Therefore the bytes are counted at intervals
/// instead.
struct IdleTracker {
    /// The interval between checks. A timeout may be noticed up to two intervals late.
    static let interval = Duration.seconds(1)

    /// The time of the last check that found new bytes.
    private var lastChange = ContinuousClock.now
    private var bytes: Int64 = -1

    /// Records a check.
    ///
    /// - Parameters:
    ///   - timeout: The allowed silence.
    ///   - now: The time of the check.
    ///   - bytes: The number of bytes transferred so far; `nil` while silence is allowed.
    /// - Returns: Whether no bytes were transferred for at least `timeout`.
    mutating func exceeds(_ timeout: Duration, at now: ContinuousClock.Instant, bytes: Int64?) -> Bool {
        guard let bytes, bytes == self.bytes else {
            (lastChange, self.bytes) = (now, bytes ?? -1)
            return false
        }
        return lastChange.duration(to: now) >= timeout
    }
}

extension Transfer {
    /// Returns a message about the exceeded timeout; `nil` if no timeout is exceeded. Also sets `isAnswerLate`.
    func timeoutMessage(at now: ContinuousClock.Instant) -> String? {
        let responseTimeout = currentResponseTimeout
        if let timeout = responseTimeout ?? request.idleTimeout, isIdle(for: timeout, at: now) {
            isAnswerLate = responseTimeout != nil
            return isAnswerLate
                ? "no response within \(timeout) of the request"
                : "no bytes were sent or received for \(timeout)"
        }
        return bodyIsLate(at: now) ? "the response took longer than \(request.bodyTimeout ?? .zero)" : nil
    }

    private func bodyIsLate(at now: ContinuousClock.Instant) -> Bool {
        guard let timeout = request.bodyTimeout, let headDelivered else { return false }
        return headDelivered.duration(to: now) >= timeout
    }

    /// The time that the server may take to respond; `nil` unless the whole request was sent and no head has arrived.
    private var currentResponseTimeout: Duration? {
        request.responseTimeout.flatMap { isReady && isSent && !hasDeliveredHead ? $0 : nil }
    }

    /// Whether no bytes were transferred for `timeout`. Time spent waiting for a body source counts; a pause does not.
    private func isIdle(for timeout: Duration, at now: ContinuousClock.Instant) -> Bool {
        idleTracker.exceeds(timeout, at: now, bytes: isReady && paused.isEmpty ? wireBytes : nil)
    }

    /// The number of bytes of all heads and bodies, in both directions.
    private var wireBytes: Int64 {
        Int64(easy.long(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
            + Int64(easy.long(CURLINFO_HEADER_SIZE)) + easy.offset(CURLINFO_SIZE_DOWNLOAD_T)
    }
}
