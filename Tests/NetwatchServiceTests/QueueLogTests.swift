internal import Foundation
internal import Logging
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct QueueLogTests {
    private let messages = Recorder<String>()
    private let log: QueueLog

    init() {
        log = QueueLog(.recording(messages))
    }

    private func event(
        _ kind: QueueEvent.Kind,
        _ id: String? = "a",
        host: String = "a.example",
        hold: HoldReason? = nil,
        reason: String? = nil
    ) -> QueueEvent {
        var event = QueueEvent(kind, at: Date(timeIntervalSince1970: 0))
        event.requestID = id
        event.host = host
        event.holdReason = hold
        event.reason = reason
        return event
    }

    @Test func `requests that are held or given up are logged with their reason`() async {
        await log.log(event(.dead, reason: "HTTP 422"))
        await log.log(event(.expired, "b"))
        await log.log(event(.held, "c", hold: .auth, reason: "HTTP 401"))
        await log.log(event(.held, "d", hold: .user))
        #expect(
            messages.values == [
                "request `a` to `a.example` was given up: HTTP 422",
                "request `b` to `a.example` was given up",
                "request `c` to `a.example` is held for `auth`: HTTP 401",
                "request `d` to `a.example` is held until a user releases it",
            ]
        )
    }

    @Test func `a lane that a server closes is logged, and a flush that opens it`() async {
        var closed = event(.laneClosed, nil)
        (closed.due, closed.status, closed.lane) = (Date(timeIntervalSince1970: 60), 429, "orders")
        await log.log(closed)
        await log.log(event(.laneOpened, nil))
        closed.submitter = 1001
        await log.log(closed)
        #expect(
            messages.values == [
                "the lane `orders` to `a.example` is closed until 1970-01-01T00:01:00.000Z by HTTP 429",
                "the lane to `a.example` is open again",
                "the lane `orders` of the user 1001 to `a.example` is closed until 1970-01-01T00:01:00.000Z by HTTP 429",
            ]
        )
    }

    @Test func `pushes of metrics are not logged, but imported requests with their label are`() async {
        var dead = event(.dead)
        dead.lane = MetricsPush.lane
        for submitter in [nil, 0, 1001] as [UInt32?] {
            dead.submitter = submitter
            await log.log(dead)
        }
        let message = "request `a` to `a.example` was given up"
        #expect(messages.values == [message, message])
    }

    @Test func `requests that are enqueued, sent, postponed or delivered are not logged`() async {
        for kind: QueueEvent.Kind in [.enqueued, .started, .postponed, .delivered, .removed, .cancelled] {
            await log.log(event(kind, reason: "x"))
        }
        #expect(messages.values.isEmpty)
    }

    @Test func `a reason stays on one line`() async {
        let reason = "a\nnetwatch: ready\u{1B}[2J" + String(repeating: "x", count: 1000)
        await log.log(event(.dead, reason: reason))
        let message = messages.values.first ?? ""
        #expect(message.hasPrefix("request `a` to `a.example` was given up: a\\nnetwatch: ready\\u{1B}[2Jx"))
        #expect(message.utf8.count < 600)
    }

    @Test func `a host with many failures leaves lines for others, and the rest is counted`() async {
        for _ in 0..<30 { await log.log(event(.dead)) }
        await log.log(event(.dead, host: "b.example"))
        #expect(messages.values.count == 11)
        #expect(messages.values.last == "request `a` to `b.example` was given up")
        await log.endPeriod()
        #expect(
            messages.values.last
                == "lines about requests and lanes that were not logged in the last minute: 20"
        )
        await log.log(event(.dead))
        #expect(messages.values.last == "request `a` to `a.example` was given up")
    }

    @Test func `the number of lines of all hosts together is limited`() async {
        for number in 0..<200 { await log.log(event(.dead, host: "\(number).example")) }
        #expect(messages.values.count == 100)
        await log.endPeriod()
        await log.endPeriod()
        #expect(messages.values.count == 101)
    }
}
