/// The reason why the queue gave a request up. Code that gives up a request must name one of these causes.
///
/// The table "Every way to be given up" in `WhatFailuresMean.md` describes each cause. A test compares the names.
package enum DeathCause: String, Hashable, Sendable, CaseIterable {
    /// The server responded with a status that another attempt would not change.
    case refused
    /// The server redirected the request. The queue does not follow redirects.
    case redirected
    /// The server responded only with 409 for ``FailureTable/longestConflict`` (10 minutes).
    case conflict
    /// The client cannot send the stored request, for example because of a malformed URL.
    case unsendable
    /// The stored body is missing or was changed.
    case bodyLost = "body-lost"
    /// The maximum number of attempts (``EnqueueOptions/maximumAttempts``) has failed.
    case attemptsUsedUp = "attempts-used-up"
    /// The time to live or the deadline has passed.
    case expired
    /// The queue or the lane was full, or the quota of the user was reached, and a newer request needed the room.
    case dropped
    /// The request was imported, and had already been given up in the queue that exported it.
    case imported
}
