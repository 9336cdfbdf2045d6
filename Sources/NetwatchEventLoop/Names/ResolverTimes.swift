/// The durations and limits of a resolver.
package enum ResolverTimes {
    /// How long an answer is fresh. `getaddrinfo(3)` returns no TTL; 30 s is shorter than most TTLs and longer than a
    /// burst of requests.
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
    /// The delay after a failed refresh before the next one, while stale answers are returned: the failure recheck
    /// timer of RFC 8767 §5.
    package static let recheck: Duration = .seconds(30)
    /// The duration above which a lookup counts as slow. Less than half of the first timeout of `resolv.conf(5)`, 5
    /// s, and longer than a slow chain of delegations takes.
    package static let slowLookup: Duration = .seconds(2)
    /// The maximum number of names in the cache. With one address each they take about 3 MiB.
    package static let maximumNames = 10_000
    /// The maximum number of addresses per name.
    package static let maximumAddresses = 64
    /// The maximum number of concurrent lookups.
    package static let maximumThreads = 128
    /// The stack size of a resolver thread in bytes. `getaddrinfo(3)` of glibc 2.36 uses 16 KiB with `files` and
    /// `dns` (docs/evidence.md). The rest is for other plugins of `nsswitch.conf(5)`. Only touched pages use memory.
    package static let stackSize = 1024 * 1024
}
