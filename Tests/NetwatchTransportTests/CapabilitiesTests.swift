internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The messages about a libcurl with fewer features than Debian's, and the transfers that are then refused.
@Suite(.timeLimit(.minutes(5))) struct CapabilitiesTests {
    private func capabilities(tls: String?, http2: Bool = true) -> TransferCapabilities {
        TransferCapabilities(version: "8.0.0", tlsLibrary: tls, supportsHTTP2: http2, decodableEncodings: [])
    }

    @Test func `this machine's libcurl has all features`() {
        #expect(TransferCapabilities.current.shortcomings == [])
        #expect(TransferCapabilities.current.usesOpenSSL)
    }

    @Test(arguments: [
        (nil, true, ["no TLS"]), ("GnuTLS/3.7.9", true, ["GnuTLS/3.7.9"]),
        ("OpenSSL/3.0.17", false, ["HTTP/1.1"]),
        ("GnuTLS/3.7.9", false, ["GnuTLS/3.7.9", "HTTP/1.1"]),
        // libcurl puts inactive TLS libraries in parentheses. The active library decides, because our functions need
        // its structures.
        ("(OpenSSL/3.0.0) GnuTLS/3.7.9", true, ["GnuTLS/3.7.9"]),
    ])
    func `each missing feature is described with its effect`(tls: String?, http2: Bool, words: [String]) {
        let sentences = capabilities(tls: tls, http2: http2).shortcomings
        #expect(sentences.count == words.count)
        for (sentence, word) in zip(sentences, words) { #expect(sentence.contains(word)) }
    }

    @Test(arguments: [("OpenSSL/1.1.1w", 3), ("OpenSSL/3.0.17", 1), ("OpenSSL/30.0.1", 3), ("OpenSSL/x", 3)])
    func `another major version of OpenSSL in libcurl is refused`(tls: String, linked: UInt) throws {
        let capabilities = TransferCapabilities(
            version: "8.0.0",
            tlsLibrary: tls,
            supportsHTTP2: true,
            decodableEncodings: [],
            linkedOpenSSL: linked
        )
        let failure = try #require(capabilities.missing(for: .standard))
        #expect(failure.code == 4)
        #expect(failure.message.contains("OpenSSL \(tls.dropFirst(8)), but"))
        #expect(failure.message.contains("OpenSSL \(linked):"))
        #expect(capabilities.shortcomings == [failure.message])
    }

    @Test(arguments: ["OpenSSL/3.0.17", "OpenSSL/3.5.0", "GnuTLS/3.7.9"])
    func `other versions of OpenSSL and other libraries do not conflict`(tls: String) {
        let capabilities = TransferCapabilities(
            version: "8.0.0",
            tlsLibrary: tls,
            supportsHTTP2: true,
            decodableEncodings: [],
            linkedOpenSSL: 3
        )
        #expect(capabilities.openSSLConflict == nil)
        #expect(capabilities.missing(for: .standard) == nil)
    }

    @Test func `only trusts that need a callback require OpenSSL`() {
        let other = capabilities(tls: "GnuTLS/3.7.9")
        var checked = TransferTrust()
        checked.check = TrustCheck { _ in true }
        var pinned = TransferTrust()
        pinned.anchors = .only(pem: [])
        #expect(other.missing(for: .standard) == nil)
        #expect(other.missing(for: pinned)?.code == 4)
        var listed = TransferTrust()
        listed.requiresRevocationList = true
        #expect(other.missing(for: checked)?.code == 4)
        #expect(other.missing(for: listed)?.code == 4)
        #expect(other.missing(for: checked)?.message.contains("GnuTLS/3.7.9") == true)
        #expect(capabilities(tls: "OpenSSL/3.0.17").missing(for: checked) == nil)
    }

    // MARK: Engine

    @Test func `an engine connects for no transfer if the major versions of OpenSSL differ`() async throws {
        let server = try ScriptedServer()
        let directory = try ScratchDirectory()
        let unixServer = try ScriptedServer(unixPath: directory.file("socket"))
        let capabilities = capabilities(tls: "OpenSSL/1.1.1w")
        let conflict = try #require(capabilities.openSSLConflict)
        let engine = try TransferEngine(capabilities: capabilities)
        var unixRequest = TransferRequest(url: "http://name.test/")
        unixRequest.unixSocketPath = directory.file("socket")
        let requests = [
            TransferRequest(server), TransferRequest(url: "https://127.0.0.1:\(server.port)/"), unixRequest,
        ]
        for request in requests {
            let failure = await engine.run(request).failure
            #expect(failure?.code == 4, "\(request.url)")
            #expect(failure?.message == conflict, "\(request.url)")
        }
        #expect(server.connectionCount == 0 && unixServer.connectionCount == 0)
    }

    @Test func `an engine without OpenSSL refuses only trusts that need it`() async throws {
        let engine = try TransferEngine(capabilities: capabilities(tls: "GnuTLS/3.7.9"))
        var request = TransferRequest(url: "https://127.0.0.1:1/")
        // Nothing listens on the port.
        #expect(await engine.run(request).failure?.code == 7)
        request.trust.check = TrustCheck { _ in true }
        #expect(await engine.run(request).failure?.code == 4)
    }
}
