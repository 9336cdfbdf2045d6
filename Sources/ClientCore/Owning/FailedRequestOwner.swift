/// Finishes requests that have failed, in place of their session: a queue that sends them again later, for
/// example.
///
/// A session may have one, ``SessionManager/failedRequestOwner``, and a request its own,
/// ``Request/offerFailure(to:)``, which is asked first. They come after everybody who may retry, and before the
/// handlers, and each is asked once about one failure.
package protocol FailedRequestOwner: Sendable {
    /// Offers a failed request. Who keeps it has taken it, and owes it an end; who lets go of it has not.
    ///
    /// Called on the request's own queue, which it must not block. It is not asked about requests that were
    /// cancelled, for which no `URLRequest` could be made, or that are one transfer of somebody else's.
    func offer(_ request: FailedRequest)
}
