internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability
@testable internal import netwatch

/// The texts of paths.
@Suite struct PathSummaryTests {
    @Test(
        arguments: [
            ("192.0.2.7", "192.0.2.1", "192.0.2.7 via 192.0.2.1"), ("192.0.2.7", nil, "192.0.2.7"),
            (nil, "192.0.2.1", "via 192.0.2.1"),
        ] as [(String?, String?, String)]
    )
    func `a path over an unknown interface has no gap before its source`(
        source: String?,
        gateway: String?,
        text: String
    ) throws {
        let path = NetworkPath(
            destination: try #require(IPAddress("198.51.100.7")),
            interface: nil,
            gateway: gateway.flatMap { IPAddress($0) },
            source: source.flatMap { IPAddress($0) },
            isLocal: false,
            prefixLength: 0,
            table: 254
        )
        let status = PathStatus(
            target: .general,
            verdict: TargetVerdict(.reachable(path)),
            pathGeneration: 1
        )
        #expect(status.summary == text)
    }
}
