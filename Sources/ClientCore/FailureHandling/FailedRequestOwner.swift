/// Finishes failed requests instead of their session, for example a queue that sends them again later.
///
/// A session can have one owner, ``SessionManager/failedRequestOwner``. A request can have its own,
/// ``Request/offerFailure(to:)``, which is called first. Owners are called after all retriers and before the
/// handlers, each once per failure.
package protocol FailedRequestOwner: Sendable {
    /// Offers a failed request. Retaining the ``FailedRequest`` claims it, and its owner must then end it. Releasing
    /// it declines the offer.
    ///
    /// Called on the request's own queue, which it must not block. It is not called for cancelled requests, for
    /// requests without a valid `URLRequest`, or for transfers whose policy excludes retries
    /// (``TransferPolicy/asksRetrier``).
    func offer(_ request: FailedRequest)
}
