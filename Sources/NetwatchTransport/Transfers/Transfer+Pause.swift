internal import CNetwatchCurl

extension Transfer {
    /// Pauses directions of the transfer, in addition to those already paused.
    ///
    /// libcurl pauses immediately while it is sending or receiving, and ignores a pause set before that. The callbacks
    /// handle that case. This function and the functions below must not be called from a callback. A result other than
    /// `CURLE_OK` ends the transfer.
    func pause(_ directions: TransferPause) -> CURLcode {
        paused.formUnion(directions)
        return applyPause()
    }

    /// Receives no more of the body in this turn. Data that was already read is still delivered, because libcurl would
    /// have to keep it. Unlike ``pause(_:)`` this may be called from a callback.
    func stopReceiving() {
        receiveLimiter.isStoppedForTurn = true
    }

    /// Resumes all directions.
    func resume() -> CURLcode {
        guard !paused.isEmpty else { return CURLE_OK }
        paused = []
        return applyPause()
    }

    func sourceIsReady() -> CURLcode {
        guard isWaitingForSource else { return CURLE_OK }
        isWaitingForSource = false
        return applyPause()
    }

    /// Resumes a body in a new turn, in which more may be decoded.
    func resumeReceiving() -> CURLcode {
        guard receiveLimiter.isPaused else { return CURLE_OK }
        receiveLimiter.isPaused = false
        return applyPause()
    }

    private func applyPause() -> CURLcode {
        var paused = paused
        if isWaitingForSource { paused.insert(.sending) }
        if receiveLimiter.isPaused { paused.insert(.receiving) }
        let code = curl_easy_pause(handle, paused.mask)
        // There is no connection yet, so nothing has to be paused.
        return code == CURLE_BAD_FUNCTION_ARGUMENT ? CURLE_OK : code
    }
}
