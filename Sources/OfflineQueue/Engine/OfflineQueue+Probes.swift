/// Probes by others that show which servers respond.
extension OfflineQueue {
    /// Ends the delays of requests to origins to which a probe has succeeded, if their last attempts got no response.
    ///
    /// Such delays are pointless when the server responds again. Other delays continue, such as those by `Retry-After`.
    package func probeSucceeded(_ origins: [Origin]) {
        guard phase == .running, scheduler.awaitsResponse(of: origins) else { return }
        handle(.probeSucceeded(origins))
    }
}
