/// The durations and limits that a resolver works with.
package enum ResolverTimes {
    /// How long an answer is fresh. `getaddrinfo(3)` returns no TTL; 30 s is short next to the TTLs of
    /// most names and long next to a burst of requests.
    package static let freshness: Duration = .seconds(30)
    /// How long a failure that a name server reported is returned without another lookup. RFC 2308 §5 allows
    /// the TTL of the SOA record, which `getaddrinfo(3)` does not return.
    package static let failureAge: Duration = .seconds(5)
    /// How long `EAI_AGAIN` is returned without another lookup: the minimum of RFC 9520 §3.2.
    package static let temporaryFailureAge: Duration = .seconds(1)
    /// How old a stale answer may be. RFC 8767 §4 suggests days for shared resolvers.
    package static let staleLimit: Duration = .seconds(3600)
    /// How long a caller waits for a lookup before it gets a stale answer: the client response timer of RFC 8767 §5.
    package static let clientResponse: Duration = .milliseconds(1800)
    /// How long after a failed refresh the next one follows while stale answers are returned: the failure
    /// recheck timer of RFC 8767 §5.
    package static let recheck: Duration = .seconds(30)
    /// A lookup that takes longer makes its name a silent one. Less than half of the first timeout of
    /// `resolv.conf(5)`, 5 s, and more than a slow chain of delegations takes.
    package static let silence: Duration = .seconds(2)
    /// How many names a cache holds. With one address each they take about 3 MiB.
    package static let mostNames = 10_000
    /// How many addresses of a name are kept.
    package static let mostAddresses = 64
    /// How many lookups run at once.
    package static let mostThreads = 128
    /// The stack of a resolver thread in bytes. `getaddrinfo(3)` of glibc 2.36 uses 16 KiB with `files` and `dns`
    /// (docs/evidence.md); the rest is for other plugins of `nsswitch.conf(5)`. Only pages that are touched take memory.
    package static let stackSize = 1024 * 1024
}
