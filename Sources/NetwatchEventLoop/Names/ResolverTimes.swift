/// The durations and limits of a resolver.
package enum ResolverTimes {
    /// The time for which an answer is fresh: 30 s. `getaddrinfo(3)` returns no TTL; 30 s is shorter than most TTLs and
    /// longer than a burst of requests.
    package static let freshness: Duration = .seconds(30)
    /// The time for which a failure is returned without another lookup: 5 s. RFC 2308 §5 allows the TTL of the SOA
    /// record, but `getaddrinfo(3)` does not return it.
    package static let failureAge: Duration = .seconds(5)
    /// The time for which `EAI_AGAIN` is returned without another lookup: 1 s, the minimum of RFC 9520 §3.2.
    package static let temporaryFailureAge: Duration = .seconds(1)
    /// The maximum age of a stale answer: one hour. RFC 8767 §4 suggests days, for resolvers that many machines share.
    package static let staleLimit: Duration = .seconds(3600)
    /// The time for which a caller waits for a lookup before it gets a stale answer: 1.8 s, the client response timer
    /// of RFC 8767 §5.
    package static let clientResponse: Duration = .milliseconds(1800)
    /// The delay between a failed refresh and the next one while stale answers are used: 30 s, the failure recheck
    /// timer of RFC 8767 §5.
    package static let recheck: Duration = .seconds(30)
    /// The minimum duration of a lookup that counts as slow: 2 s. If the name servers respond, even a lookup through
    /// many delegations takes less. If one is silent, the C library waits 5 s before it tries again (`resolv.conf(5)`).
    package static let slowLookup: Duration = .seconds(2)
    /// The maximum number of names in the cache: 10,000. With one address each, they take about 3 MiB.
    package static let maximumNames = 10_000
    /// The maximum number of addresses per name. Further addresses are dropped.
    package static let maximumAddresses = 64
    /// The maximum number of concurrent lookups.
    package static let maximumThreads = 128
    /// The stack size of a resolver thread: 1 MiB. `getaddrinfo(3)` of glibc 2.36 needs a small part of it with
    /// `files` and `dns`. The rest is for other plugins of `nsswitch.conf(5)`. Only used pages take memory.
    package static let stackSize = 1024 * 1024
}
