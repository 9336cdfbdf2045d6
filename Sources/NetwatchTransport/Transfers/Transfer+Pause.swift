internal import CNetwatchCurl

extension Transfer {
    /// Lets parts of the transfer stand still, in addition to those that do.
    ///
    /// libcurl stops at once when it is sending or receiving, and forgets what it is told before; the callbacks
    /// see to that. Like the functions below, it must not be called from a callback, and what it returns other
    /// than `CURLE_OK` ends the transfer.
    func pause(_ what: TransferPause) -> CURLcode {
        paused.formUnion(what)
        return applyPause()
    }

    /// Takes no more of the body in this turn than what was read already, which libcurl would have to keep. Unlike
    /// ``pause(_:)`` this may be called from a callback.
    func hold() {
        inflow.isUnwanted = true
    }

    /// Lets everything go on.
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

    /// Another turn has begun, in which more may be decoded.
    func flowOn() -> CURLcode {
        guard inflow.isHeld else { return CURLE_OK }
        inflow.isHeld = false
        return applyPause()
    }

    private func applyPause() -> CURLcode {
        var paused = paused
        if isWaitingForSource { paused.insert(.sending) }
        if inflow.isHeld { paused.insert(.receiving) }
        let code = curl_easy_pause(handle, paused.mask)
        // There is no connection yet.
        return code == CURLE_BAD_FUNCTION_ARGUMENT ? CURLE_OK : code
    }
}
