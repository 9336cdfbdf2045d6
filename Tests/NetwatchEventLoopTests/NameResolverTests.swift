internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct NameResolverTests {
    private let found = NameResolver.Outcome.success([IPAddress("192.0.2.1")!])

    @Test func `more names than the cache holds wait in the order of their arrival`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<Bool>()
        let names = (0..<2 * ResolverTimes.maximumNames).map(String.init)
        let resolver = NameResolver(maximumThreads: 1) { [found] name in
            if name == "first" { gate.wait() }
            asked.record(name)
            return found
        }
        resolver.resolve("first") { _ in }
        for name in names { resolver.resolve(name) { _ in } }
        resolver.resolve("last") { _ in answered.record(true) }
        gate.open()
        try await answered.wait { !$0.isEmpty }
        // The result is compared outside #expect, because reporting the difference of the arrays would take minutes.
        let isInOrder = asked.values == ["first"] + names + ["last"]
        #expect(isInOrder)
    }

    @Test func `a lookup joins one in progress for the same name`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<NameResolver.Outcome>()
        let resolver = NameResolver { [found] name in
            asked.record(name)
            gate.wait()
            return found
        }
        for _ in 0..<3 { resolver.resolve("a.example") { answered.record($0) } }
        gate.open()
        try await answered.wait { $0.count == 3 }
        #expect(asked.values == ["a.example"])
        #expect(answered.values == [found, found, found])
    }

    @Test func `after a renewal a new lookup begins, and earlier callers get its answer`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<String>()
        let lookups = Atomic(0)
        let resolver = NameResolver { name in
            let number = lookups.add(1, ordering: .relaxed).newValue
            asked.record(name)
            if number == 1 { gate.wait() }
            return .success([IPAddress("192.0.2.\(number)")!])
        }
        let note: @Sendable (String) -> @Sendable (NameResolver.Outcome) -> Void = { who in
            { answered.record("\(who) \((try? $0.get())?.first?.description ?? "")") }
        }
        resolver.resolve("a.example", completion: note("before"))
        try await asked.wait { $0.count == 1 }
        resolver.resolve("a.example", completion: note("joined"))
        resolver.renew()
        resolver.resolve("a.example", completion: note("after"))
        try await answered.wait { $0.count == 3 }
        // The new lookup may have ended before the last call, which then has its answer first.
        #expect(answered.values.sorted() == ["after 192.0.2.2", "before 192.0.2.2", "joined 192.0.2.2"])
        gate.open()
        #expect(asked.values == ["a.example", "a.example"])
    }

    @Test func `a name that waits for a thread is looked up once, despite renewals`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<String>()
        let lookups = Atomic(0)
        let resolver = NameResolver(maximumThreads: 1) { name in
            asked.record(name)
            if lookups.add(1, ordering: .relaxed).newValue == 1 { gate.wait() }
            return .success([IPAddress("192.0.2.1")!])
        }
        resolver.resolve("slow.example") { _ in answered.record("slow") }
        try await asked.wait { $0.count == 1 }
        for _ in 0..<3 {
            resolver.resolve("a.example") { _ in answered.record("a") }
            resolver.renew()
        }
        gate.open()
        try await answered.wait { $0.count == 4 }
        #expect(asked.values == ["slow.example", "a.example", "slow.example"])
    }

    @Test func `a missing namespace fails all pending lookups`() async throws {
        let answered = Recorder<NameResolver.Outcome>()
        let resolver = NameResolver(networkNamespace: "/no/such/namespace")
        let names = (0..<100).map { "\($0).example" }
        for name in names { resolver.resolve(name) { answered.record($0) } }
        try await answered.wait { $0.count == names.count }
        let failure = NameResolver.Outcome.failure(.init(code: EAI_SYSTEM, errno: ENOENT))
        #expect(answered.values.allSatisfy { $0 == failure })
    }

    @Test(arguments: ["localhost", "LocalHost.", "a.b.localhost", "x.LOCALHOST."])
    func `localhost and the names below it are loopback, without a lookup`(name: String) {
        let answered = Recorder<NameResolver.Outcome>()
        let resolver = NameResolver { _ in .failure(.init(code: EAI_FAIL)) }
        resolver.resolve(name) { answered.record($0) }
        #expect(answered.values == [.success([IPAddress("::1")!, IPAddress("127.0.0.1")!])])
    }

    @Test(arguments: ["192.0.2.7", "2001:db8::7"])
    func `a literal is returned without a lookup`(literal: String) {
        let answered = Recorder<NameResolver.Outcome>()
        let resolver = NameResolver { _ in .failure(.init(code: EAI_FAIL)) }
        resolver.resolve(literal, urgency: .refresh) { answered.record($0) }
        #expect(answered.values == [.success([IPAddress(literal)!])])
    }

    @Test func `names that only end like localhost are looked up`() async throws {
        let asked = Recorder<String>()
        let resolver = NameResolver { [found] name in
            asked.record(name)
            return found
        }
        for name in ["notlocalhost", "localhost.example"] { resolver.resolve(name) { _ in } }
        try await asked.wait { $0.count == 2 }
    }

    @Test func `a cached answer is delivered before the call returns, ignoring case`() async throws {
        let answered = Recorder<NameResolver.Outcome>()
        let resolver = NameResolver { [found] _ in found }
        resolver.resolve("a.example") { answered.record($0) }
        try await answered.wait { $0.count == 1 }
        resolver.resolve("A.Example") { answered.record($0) }
        #expect(answered.values == [found, found])
    }

    @Test func `a change of the resolver's files empties the cache`() async throws {
        let directory = try ScratchDirectory()
        let asked = Recorder<String>()
        let resolver = NameResolver(files: [directory.file("resolv.conf")]) { [found] name in
            asked.record(name)
            return found
        }
        func ask() async throws {
            let answered = Recorder<Bool>()
            resolver.resolve("a.example") { _ in answered.record(true) }
            try await answered.wait { !$0.isEmpty }
        }
        for content in [nil, "nameserver 192.0.2.1", "nameserver 192.0.2.22"] {
            if let content { try directory.write(Array(content.utf8), to: "resolv.conf") }
            try await ask()
            try await ask()
        }
        #expect(asked.values.count == 3)
    }

    @Test func `an abandoned lookup delivers no answer and reports whether it had started`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<String>()
        let resolver = NameResolver(maximumThreads: 1) { [found] name in
            asked.record(name)
            gate.wait()
            return found
        }
        let begun = resolver.resolve("begun.example") { _ in answered.record("begun") }
        try await asked.wait { $0.count == 1 }
        let waiting = resolver.resolve("waiting.example") { _ in answered.record("waiting") }
        resolver.resolve("last.example") { _ in answered.record("last") }
        #expect(resolver.abandon(waiting) == true)
        #expect(resolver.abandon(begun) == false)
        gate.open()
        gate.open()
        try await answered.wait { !$0.isEmpty }
        #expect(answered.values == ["last"])
        #expect(asked.values == ["begun.example", "last.example"])
        #expect(resolver.abandon(waiting) == false)
    }

    @Test func `a thousand slow names have at most 128 threads, which end with them`() async throws {
        let gate = Gate()
        let begun = Recorder<Bool>(), answered = Recorder<Bool>(), released = Recorder<Bool>()
        do {
            let captured = Captured { released.record(true) }
            let resolver = NameResolver { _ in
                begun.record(true)
                gate.wait()
                return withExtendedLifetime(captured) { .failure(.init(code: EAI_AGAIN)) }
            }
            for number in 0..<1000 { resolver.resolve("\(number).example") { _ in answered.record(true) } }
            try await begun.wait { $0.count == 112 }
            let snapshot = resolver.snapshot()
            // Seven eighths of the threads are for names that were never resolved.
            #expect(snapshot.threads == 112 && snapshot.waiting == 888)
            for _ in 0..<1000 { gate.open() }
            try await answered.wait { $0.count == 1000 }
        }
        // Each thread retains the resolver until it ends.
        try await released.wait { !$0.isEmpty }
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `every lookup runs in the namespace`() async throws {
        let namespace = try NetworkNamespace()
        let places = Recorder<String>(), answeredIn = Recorder<String>()
        let rendezvous = Gate()
        let resolver = NameResolver(maximumThreads: 2, networkNamespace: namespace.path) { [found] name in
            places.record(NetworkNamespace.current)
            rendezvous.wait()
            return found
        }
        let inside = namespace.run { NetworkNamespace.current }
        for name in ["a.example", "b.example"] {
            resolver.resolve(name) { _ in answeredIn.record(NetworkNamespace.current) }
        }
        try await places.wait { $0.count == 2 }
        rendezvous.open()
        rendezvous.open()
        #expect(places.values == [inside, inside])
        let outside = NetworkNamespace.current
        #expect(outside != inside)
        try await answeredIn.wait { $0.count == 2 }
        #expect(answeredIn.values == [outside, outside])
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `the C library's lookup works in a namespace`() async throws {
        let namespace = try NetworkNamespace()
        let resolver = NameResolver(networkNamespace: namespace.path)
        let answered = Recorder<NameResolver.Outcome>()
        // `inet_aton(3)` accepts this form, but netwatch does not treat it as an address.
        resolver.resolve("127.2") { answered.record($0) }
        try await answered.wait { !$0.isEmpty }
        #expect(answered.values == [.success([IPAddress("127.0.0.2")!])])
        withExtendedLifetime(namespace) {}
    }
}
