internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct NameResolverTests {
    private let found = NameResolver.Outcome.success([IPAddress("192.0.2.1")!])

    @Test func `names wait in the order they came, a hundred thousand of them`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<Bool>()
        let names = (0..<100_000).map(String.init)
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
        // Said in one word: a report of the difference would take minutes.
        let isInOrder = asked.values == ["first"] + names + ["last"]
        #expect(isInOrder)
    }

    @Test func `a lookup that fits one under way joins it`() async throws {
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

    @Test func `a lookup after the renewal asks anew, and those before it get their own answer`() async throws
    {
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
        try await answered.wait { $0.count == 1 }
        #expect(answered.values == ["after 192.0.2.2"])
        gate.open()
        try await answered.wait { $0.count == 3 }
        #expect(answered.values.suffix(2) == ["before 192.0.2.1", "joined 192.0.2.1"])
        #expect(asked.values == ["a.example", "a.example"])
    }

    @Test func `what has only waited for a thread is asked once, whatever is renewed`() async throws {
        let gate = Gate()
        let asked = Recorder<String>(), answered = Recorder<String>()
        let resolver = NameResolver(maximumThreads: 1) { name in
            asked.record(name)
            if name == "slow.example" { gate.wait() }
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
        #expect(asked.values == ["slow.example", "a.example"])
    }

    @Test func `a namespace that is not there fails everything that waits`() async throws {
        let answered = Recorder<NameResolver.Outcome>()
        let resolver = NameResolver(networkNamespace: "/no/such/namespace")
        let names = (0..<100).map { "\($0).example" }
        for name in names { resolver.resolve(name) { answered.record($0) } }
        try await answered.wait { $0.count == names.count }
        let failure = NameResolver.Outcome.failure(.init(code: EAI_SYSTEM, errno: ENOENT))
        #expect(answered.values.allSatisfy { $0 == failure })
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `names are looked up in the namespace, by every thread and only there`() async throws {
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
    func `the C library looks up on a thread in a namespace`() async throws {
        let namespace = try NetworkNamespace()
        let resolver = NameResolver(networkNamespace: namespace.path)
        let answered = Recorder<NameResolver.Outcome>()
        // `inet_aton(3)` knows this form, which is no literal of ours.
        resolver.resolve("127.2") { answered.record($0) }
        try await answered.wait { !$0.isEmpty }
        #expect(answered.values == [.success([IPAddress("127.0.0.2")!])])
        withExtendedLifetime(namespace) {}
    }
}
