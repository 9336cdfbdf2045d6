internal import Foundation
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Whether a failed transfer may be due to a missing network.
@Suite struct OfflineCheckTests {
    @Test(arguments: [
        ("localhost", false), ("LOCALHOST.", false), ("a.localhost", false), ("a.b.localhost.", false),
        ("localhost.example.com", true), ("notlocalhost", true),
    ])
    func `a name below localhost needs no network`(host: String, mayBeOffline: Bool) throws {
        let failure = TransferFailure(code: 6, phase: .resolve, message: "")
        let url = try #require(URL(string: "http://\(host)/"))
        #expect((OfflineCheck(failure, url, TransferMetrics(startedAt: .now)) != nil) == mayBeOffline)
    }
}
