/// The cause for which a request was given up. Every code path that gives up a request must name one.
///
/// The table "Every way to be given up" of `WhatFailuresMean.md` lists the same names; a test compares them.
package enum DeathCause: String, Hashable, Sendable, CaseIterable {
    /// The server responded with a status that another attempt would not change.
    case refused
    /// The server redirects, and redirects are not followed.
    case redirected
    /// The server responded with nothing but 409 for ``FailureTable/longestConflict``.
    case conflict
    /// The client cannot build a request from the stored one.
    case unsendable
    /// The body's file is missing or was changed.
    case bodyLost = "body-lost"
    /// The maximum number of attempts has failed.
    case attemptsUsedUp = "attempts-used-up"
    /// The time to live or the deadline has passed.
    case expired
    /// The queue was full, and a newer request needed the room.
    case dropped
    /// It had been given up in the queue that it was exported from.
    case imported
}
