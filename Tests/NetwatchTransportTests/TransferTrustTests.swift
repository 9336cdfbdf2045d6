internal import Testing

@testable internal import NetwatchTransport

/// The equality of trusts, which decides whether transfers share connections.
@Suite(.timeLimit(.minutes(5))) struct TransferTrustTests {
    /// For each property, trusts in which only this property differs from the default. Values with a length have equal
    /// lengths, because the hash uses only the length.
    private static let variants: [(property: String, trust: TransferTrust)] = [
        ("anchors", changed { $0.anchors = nil }),
        ("anchors", changed { $0.anchors = .only(pem: Array("one".utf8)) }),
        ("anchors", changed { $0.anchors = .only(pem: Array("two".utf8)) }),
        ("minimumVersion", changed { $0.minimumVersion = .tls12 }),
        ("minimumVersion", changed { $0.minimumVersion = .tls13 }),
        ("checksHost", changed { $0.checksHost = false }),
        ("requiresStapledStatus", changed { $0.requiresStapledStatus = true }),
        ("revocationLists", changed { $0.revocationLists = Array("one".utf8) }),
        ("revocationLists", changed { $0.revocationLists = Array("two".utf8) }),
        ("requiresRevocationList", changed { $0.requiresRevocationList.toggle() }),
        ("acceptsAnyRevocationSource", changed { $0.acceptsAnyRevocationSource.toggle() }),
        ("check", changed { $0.check = TrustCheck { _ in true } }),
        ("check", changed { $0.check = TrustCheck { _ in true } }),
        ("identity", changed { $0.identity = TransferIdentity(certificates: [1], key: [1]) }),
        ("identity", changed { $0.identity = TransferIdentity(certificates: [2], key: [1]) }),
        ("identity", changed { $0.identity = TransferIdentity(certificates: [1], key: [2]) }),
    ]

    private static func changed(_ change: (inout TransferTrust) -> Void) -> TransferTrust {
        var trust = TransferTrust()
        change(&trust)
        return trust
    }

    @Test func `the test covers every property`() {
        let properties = Mirror(reflecting: TransferTrust.standard).children.compactMap(\.label)
        #expect(Set(properties) == Set(Self.variants.map(\.property)))
    }

    @Test func `trusts that differ in one property are unequal`() {
        let trusts = [.standard] + Self.variants.map(\.trust)
        #expect(Set(trusts).count == trusts.count)
        for (index, trust) in trusts.enumerated() {
            let copy = trust
            #expect(copy == trust && copy.hashValue == trust.hashValue)
            #expect(trusts.dropFirst(index + 1).allSatisfy { $0 != trust })
        }
    }

    @Test func `transfers with different trust do not share connections`() async throws {
        let engine = try TransferEngine()
        // Trusts with revocation lists are left out: these lists are invalid, so they are rejected before there is a
        // connection.
        let trusts = [.standard] + Self.variants.filter { $0.property != "revocationLists" }.map(\.trust)
        for trust in trusts + trusts {
            var request = TransferRequest(url: "https://127.0.0.1:1/")
            request.trust = trust
            #expect(await engine.run(request).failure?.code == 7)
        }
        #expect(await engine.multiCount == trusts.count)
    }
}
