/// Why a request is given up. There is no other way, since whatever gives one up has to name a cause.
///
/// The table "Every way to be given up" of `WhatFailuresMean.md` lists the same names; a test compares them.
package enum DeathCause: String, Hashable, Sendable, CaseIterable {
    /// The server has answered with a status that a repetition would not change.
    case refused
    /// The server redirects, and redirects are not followed.
    case redirected
    /// 409 was all that the server answered for ``FailureTable/longestConflict``.
    case conflict
    /// The client cannot make a request of what was stored.
    case unsendable
    /// The body's file is missing or was changed.
    case bodyLost = "body-lost"
    /// The attempts that were allowed have all failed.
    case attemptsUsedUp = "attempts-used-up"
    /// Its time to live is over.
    case expired
    /// The queue was full, and a newer request asked for its room.
    case dropped
    /// It was given up where it was exported.
    case imported
}
