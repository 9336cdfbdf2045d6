internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct StatusLineTests {
    private func text(
        _ state: String = "reachable",
        reason: String? = nil,
        hosts: [String: Int] = [:],
        queue: [QueuedRequest.State: Int]? = [:]
    ) -> String {
        let counts = queue.map { queue in
            var counts = QueueCounts()
            for (state, count) in queue { counts[state] = count }
            return counts
        }
        let network = ControlMessage.Network(state: state, reason: reason)
        return StatusLine(network: network, hosts: hosts, queue: counts).text
    }

    @Test func `the line has the network, the hosts and the queue`() {
        let queue: [QueuedRequest.State: Int] = [
            .pending: 2, .blocked: 1, .inflight: 1, .held: 5, .dead: 7, .delivered: 9,
        ]
        #expect(
            text(hosts: ["down": 1, "up": 3], queue: queue)
                == "network: reachable; hosts: 3 up, 1 down; queue: 4 waiting, 5 held"
        )
    }

    @Test func `the line has what needs an operator`() {
        let network = ControlMessage.Network(state: "reachable")
        var line = StatusLine(network: network, hosts: [:], queue: nil)
        (line.usesLastGood, line.isStoreDamaged, line.isDiskFull) = (true, true, true)
        #expect(line.text == "network: reachable; last good configuration; damaged store; full disk")
    }

    @Test func `parts without a value are short or missing`() {
        #expect(text() == "network: reachable; queue: empty")
        #expect(text("unknown", queue: nil) == "network: unknown")
        #expect(text("not_reachable", reason: "no route", queue: nil) == "network: no route")
    }
}
