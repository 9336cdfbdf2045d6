internal import Foundation
internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability
@testable internal import netwatch

/// The summary of a probed host.
@Suite struct HostRecordTests {
    private let start = BootInstant.now

    private func status(_ probe: ProbeResult?, generation: UInt64 = 1, gateway: String? = nil)
        -> ValidatedStatus
    {
        let path = NetworkPath(
            destination: IPAddress("198.51.100.7")!,
            interface: nil,
            gateway: gateway.flatMap { IPAddress($0) },
            source: nil,
            isLocal: false,
            prefixLength: 0,
            table: 254
        )
        let status = PathStatus(
            target: .host(NetworkHost("198.51.100.7")!),
            verdict: TargetVerdict(.reachable(path)),
            pathGeneration: generation
        )
        return ValidatedStatus(status: status, probe: probe)
    }

    private func record(_ statuses: [ValidatedStatus], probeName: String? = "https") -> HostRecord {
        var record = HostRecord(statuses[0].status.target, probeName: probeName)
        for status in statuses { _ = record.take(status, now: start, time: .now) }
        return record
    }

    @Test func `the summary has the numbers of probes and the quantiles of the latencies`() throws {
        let fast = ProbeResult(.valid, latency: .milliseconds(10))
        let slow = ProbeResult(.valid, latency: .milliseconds(100))
        let failed = ProbeResult(.failed("timeout"), latency: .seconds(5))
        let record = record([fast, slow, fast, failed].map { status($0) })
        let summary = try #require(record.summary(now: start + .seconds(1)))
        let parts = summary.components(separatedBy: "; ")
        #expect(parts.count == 2 && parts[1].hasPrefix("4 probes, 3 ok, p50 1"), "\(summary)")
        // A quantile is up to 15 % too large.
        #expect(parts[1].contains(/p50 1[01]\.\d ms, p95 1[01]\d ms$/), "\(summary)")
    }

    @Test func `one result that is reported with a further status counts once`() throws {
        let result = ProbeResult(.failed("timeout"))
        let changed = [status(result), status(result, gateway: "192.0.2.1")]
        let summary = try #require(record(changed).summary(now: start + .seconds(1)))
        #expect(summary.hasSuffix("; 1 probe, 0 ok"), "\(summary)")
        let newPath = [status(result), status(result, generation: 2, gateway: "192.0.2.1")]
        #expect(record(newPath).summary(now: start + .seconds(1))?.hasSuffix("; 2 probes, 0 ok") == true)
    }

    @Test func `without a probe the summary has no probes`() {
        let summary = record([status(nil)], probeName: nil).summary(now: start + .seconds(1))
        #expect(summary == "reachable, 0 changes, reachable 100.0 % of 1.0 s")
    }
}
