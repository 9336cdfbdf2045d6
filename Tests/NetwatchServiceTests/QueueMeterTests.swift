internal import Foundation
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct QueueMeterTests {
    private func event(
        _ kind: QueueEvent.Kind,
        from old: QueuedRequest.State?,
        to new: QueuedRequest.State?,
        after seconds: Double = 0
    ) -> QueueEvent {
        var event = QueueEvent(kind, at: Date(timeIntervalSince1970: 1000 + seconds))
        (event.oldState, event.newState) = (old, new)
        event.stored = Date(timeIntervalSince1970: 1000)
        return event
    }

    @Test func `attempts are counted by what became of their request`() {
        let meter = QueueMeter()
        meter.record(event(.enqueued, from: nil, to: .pending))
        meter.record(event(.started, from: .pending, to: .inflight))
        meter.record(event(.postponed, from: .inflight, to: .pending))
        meter.record(event(.held, from: .inflight, to: .held))
        meter.record(event(.held, from: .pending, to: .held))
        meter.record(event(.dead, from: .inflight, to: .dead))
        meter.record(event(.expired, from: .pending, to: .dead))
        meter.record(event(.removed, from: .dead, to: nil))
        var push = event(.dead, from: .inflight, to: .dead)
        push.lane = MetricsPush.lane
        meter.record(push)
        #expect(meter.values.attempts == [.postponed: 1, .held: 1, .dead: 1])
        push.submitter = 1001
        meter.record(push)
        #expect(meter.values.attempts[.dead] == 2, "an imported request of a user")
    }

    @Test func `the delay of a delivery begins when the request was stored`() {
        let meter = QueueMeter()
        meter.record(event(.delivered, from: .inflight, to: .delivered, after: 30))
        meter.record(event(.delivered, from: .inflight, to: .delivered, after: -5))
        meter.record(event(.dead, from: .inflight, to: .dead, after: 99))
        #expect(meter.values.attempts[.delivered] == 2)
        #expect(meter.values.delays.count == 2 && meter.values.delays.sum == .seconds(30))
    }

    @Test func `a histogram has classes that include the shorter ones`() {
        var histogram = DurationHistogram(limits: [.milliseconds(500), .seconds(1)])
        for milliseconds in [200, 700, 3000] { histogram.add(.milliseconds(milliseconds)) }
        var list = MetricList()
        list.add("delay_seconds", "The delay.", histogram)
        #expect(
            PrometheusText(list.metrics).text == """
                # HELP delay_seconds The delay.
                # TYPE delay_seconds histogram
                delay_seconds_bucket{le="0.5"} 1
                delay_seconds_bucket{le="1"} 2
                delay_seconds_bucket{le="+Inf"} 3
                delay_seconds_sum 3.9
                delay_seconds_count 3

                """
        )
    }

    @Test func `the histograms of several hosts have one type and different labels`() {
        var histogram = DurationHistogram(limits: [.seconds(1)])
        histogram.add(.milliseconds(500))
        var list = MetricList()
        let empty = DurationHistogram(limits: [])
        list.add("probe_seconds", "The probe.", [(["host": "a"], histogram), (["host": "b"], empty)])
        #expect(
            PrometheusText(list.metrics).text == """
                # HELP probe_seconds The probe.
                # TYPE probe_seconds histogram
                probe_seconds_bucket{host="a",le="1"} 1
                probe_seconds_bucket{host="a",le="+Inf"} 1
                probe_seconds_sum{host="a"} 0.5
                probe_seconds_count{host="a"} 1
                probe_seconds_bucket{host="b",le="+Inf"} 0
                probe_seconds_sum{host="b"} 0
                probe_seconds_count{host="b"} 0

                """
        )
    }
}
