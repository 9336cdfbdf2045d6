internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import Testing

@testable internal import netwatch

@Suite struct DoctorFindingTests {
    @Test(
        arguments: [
            ([.answered(code: 0), .answered(code: 5)], nil),
            ([.answered(code: 0), .silent], "a b (does not answer), so lookups may take long"),
            (
                [.unreachable(errno: ENETUNREACH), .notAnAddress],
                "a (Network is unreachable) b (is not an IP address), so host names cannot be looked up"
            ),
        ] as [([NameServerProbe.Outcome], String?)]
    )
    func `name servers are listed with the reason why they are of no use`(
        outcomes: [NameServerProbe.Outcome],
        text: String?
    ) {
        let servers = zip(["a", "b"], outcomes).map { (address: $0, outcome: $1) }
        let finding = MachineChecks.finding(servers)
        #expect(finding.message == "name servers: \(text ?? "a b")")
        #expect(finding.result == (text == nil ? .ok : .warning))
        #expect((finding.advice?.contains("`/etc/resolv.conf`") ?? false) == (text != nil))
    }

    private func decoded<Message: Decodable>(_ json: String) throws -> Message {
        try ControlMessage.decoder.decode(Message.self, from: Data(json.utf8))
    }

    private static let time = "1970-01-01T00:00:00.000Z"

    @Test func `without full access, the use of the last good configuration is known, but not the reason`()
        throws
    {
        func findings(_ member: String) throws -> [DoctorFinding] {
            let status: ControlMessage.Status = try decoded(
                """
                {"v":1,"version":"1","pid":1,"started":"\(Self.time)","network":{"state":"reachable"},
                "audit_corrections":0,"hosts":{},"queue":{"counts":{},"requests":0,"bytes":0,"paused":false,
                "disk_full":false}\(member)}
                """
            )
            return ConfigurationUse(
                reported: nil,
                status: status,
                checkedPath: "/a.toml",
                reportedFaults: []
            ).findings
        }
        #expect(try findings("").isEmpty)
        let finding = try findings(#","last_good":"\#(Self.time)""#).first
        #expect(finding?.result == .problem && finding?.advice?.contains("as root") == true)
        #expect(
            finding?.message == "the service uses its last good configuration, of \(Self.time)"
        )
    }

    @Test func `damage that a scan has found is a line of the status, and a problem with its remedy`() throws
    {
        func scan(_ members: String) throws -> ControlMessage.Scan { try decoded("{\(members)}") }
        var summary = ServiceSummary(state: .running, socket: "")
        summary.scan = try scan(#""finding_count":0"#)
        #expect(summary.storeText == nil)
        summary.scan = try scan(#""finding_count":1"#)
        #expect(
            summary.storeText == "damaged: a scan has found 1 problem; `netwatch doctor` shows what to do"
        )
        let listed = ["database", "body_unreadable", "body_changed"].map {
            #"{"kind":"\#($0)","subject":"a","message":"x"}"#
        }
        let all = try scan(#""finding_count":4,"findings":[\#(listed.joined(separator: ","))]"#)
        let findings = StoreCheck.findings(on: all)
        #expect(findings.count == 4 && findings.allSatisfy { $0.result == .problem })
        #expect(findings[0].message == "a scan has found database: a: x")
        let remedies = ["--set-aside", "dmesg", "with another id", "`netwatch queue verify` lists all"]
        #expect(zip(findings, remedies).allSatisfy { $0.advice?.contains($1) == true }, "\(findings)")
    }

    @Test func `a collector that accepts no metrics for 5 minutes and 5 intervals is a warning`() throws {
        func message(_ interval: Int, silent: Int, _ member: String = "") throws -> String? {
            let times = #""interval_seconds":\#(interval),"silent_seconds":\#(silent)"#
            let json = "{\(times),\"failures\":7\(member)}"
            return try ServiceChecks.finding(decoded(json) as ControlMessage.Push)?.message
        }
        #expect(try message(10, silent: 300) == nil && message(3600, silent: 18_000) == nil)
        let words = "the collector has accepted no metrics for"
        #expect(try message(10, silent: 301) == "\(words) 5 min 1 s; failed attempts: 7")
        #expect(
            try message(3600, silent: 18_060, #","last_success":"\#(Self.time)""#)
                == "\(words) 5 h 1 min, the last ones at \(Self.time); failed attempts: 7"
        )
    }

    @Test func `the status has a line about the configuration only if the files are not used`() throws {
        func text(_ lastGood: Date?, _ refused: Bool?) throws -> String? {
            var summary = ServiceSummary(state: .running, socket: "")
            summary.lastGood = lastGood
            summary.reload = try refused.map { try decoded(#"{"time":"\#(Self.time)","refused":\#($0)}"#) }
            return summary.configurationText
        }
        let kept = Date(timeIntervalSince1970: 0)
        #expect(try text(nil, nil) == nil)
        #expect(try text(nil, false) == nil)
        #expect(try text(kept, true)?.hasPrefix("the last good one, of \(Self.time), because ") == true)
        #expect(try text(nil, true)?.hasPrefix("reloaded without effect at \(Self.time), ") == true)
    }
}
