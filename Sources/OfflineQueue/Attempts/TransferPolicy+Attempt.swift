internal import ClientCore

extension TransferPolicy {
    /// Creates the policy of a request that the session's adapter and interceptor have adapted.
    init(of attempt: Attempt, bodyTimeout: Duration) {
        self = .singleTransfer(
            maximumResponseBytes: attempt.receivedResponseBytes,
            totalTimeout: attempt.longest,
            allowsConnectionReuse: attempt.mayBeSentTwice && !attempt.isMisdirected
        )
        isAdapted = true
        connectTimeout = attempt.timeouts.connect
        responseTimeout = attempt.timeouts.response
        httpVersion = attempt.httpVersion
        // A caller that waits for the response needs all of it, and so do rules on JSON members.
        self.bodyTimeout = attempt.responseLimit == nil ? bodyTimeout : attempt.longest
        binding = attempt.binding
        identity = attempt.permit?.identity
        permitsOrigin = attempt.permit?.permits
    }
}
