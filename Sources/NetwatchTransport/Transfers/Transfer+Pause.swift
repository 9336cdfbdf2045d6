internal import CNetwatchCurl

extension Transfer {
    /// Pauses directions of the transfer, in addition to those that are already paused. If the result is not
    /// `CURLE_OK`, the caller must end the transfer.
    ///
    /// libcurl pauses immediately while it is sending or receiving, but ignores a pause that was set earlier. The
    /// callbacks therefore check ``paused`` themselves.
    ///
    /// Must not be called from a callback of libcurl. The same holds for the functions that resume.
    func pause(_ directions: TransferPause) -> CURLcode {
        paused.formUnion(directions)
        return applyPause()
    }

    /// Stops receiving the body for the rest of this turn. May be called from a callback, unlike ``pause(_:)``.
    ///
    /// Data that libcurl has already read is still delivered, because libcurl would have to keep it.
    func stopReceiving() {
        receiveLimiter.isStoppedForTurn = true
    }

    /// Resumes the directions that the caller has paused.
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

    /// Resumes receiving after ``ReceiveLimiter`` has paused it. Called in a new turn, in which more bytes may be
    /// received.
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
        // libcurl returns this error if there is no connection yet. Then there is nothing to pause.
        return code == CURLE_BAD_FUNCTION_ARGUMENT ? CURLE_OK : code
    }
}
