internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Testing

/// Request timelines.
@Suite struct TimelineTests {
    @Test func `durations are differences of times`() {
        let timeline = Timeline(
            requestStartTime: 10,
            initialResponseTime: 10.25,
            requestCompletedTime: 11,
            serializationCompletedTime: 11.5
        )
        #expect(timeline.latency == 0.25)
        #expect(timeline.requestDuration == 1)
        #expect(timeline.serializationDuration == 0.5)
        #expect(timeline.totalDuration == 1.5)
    }

    @Test func `no duration is negative`() {
        for times in [(10.0, 9.0, 8.0, 7.0), (10, .nan, .nan, .nan)] {
            let timeline = Timeline(
                requestStartTime: times.0,
                initialResponseTime: times.1,
                requestCompletedTime: times.2,
                serializationCompletedTime: times.3
            )
            #expect(timeline.latency == 0)
            #expect(timeline.requestDuration == 0)
            #expect(timeline.serializationDuration == 0)
            #expect(timeline.totalDuration == 0)
        }
        #expect(Timeline().totalDuration == 0)
    }

    @Test func `one reading of the wall clock dates all monotonic times`() {
        let timeline = Timeline(
            start: Date(timeIntervalSinceReferenceDate: 100),
            firstByte: .milliseconds(250),
            completed: .milliseconds(500),
            serialized: .seconds(2)
        )
        #expect(timeline.requestStartTime == 100)
        #expect(timeline.initialResponseTime == 100.25)
        #expect(timeline.requestCompletedTime == 100.5)
        #expect(timeline.serializationCompletedTime == 102)
        let silent = Timeline(start: Date(), firstByte: nil, completed: .seconds(1), serialized: .seconds(1))
        #expect(silent.initialResponseTime == silent.requestCompletedTime)
    }

    @Test func `descriptions have three decimals`() {
        let timeline = Timeline(
            requestStartTime: 1,
            initialResponseTime: 1.4281,
            requestCompletedTime: 2,
            serializationCompletedTime: 3
        )
        let durations = """
            "Latency": 0.428 secs, "Request Duration": 1.000 secs, "Serialization Duration": 1.000 secs, \
            "Total Duration": 2.000 secs }
            """
        #expect(timeline.description == "Timeline: { \(durations)")
        #expect(
            timeline.debugDescription == """
                Timeline: { "Request Start Time": 1.000 secs, "Initial Response Time": 1.428 secs, \
                "Request Completed Time": 2.000 secs, "Serialization Completed Time": 3.000 secs, \(durations)
                """
        )
    }

    @Test func `the description of metrics has a line for each transaction`() throws {
        let start = Date(timeIntervalSinceReferenceDate: 0)
        let url = try #require(URL(string: "http://host/"))
        var first = TransactionMetrics(request: URLRequest(url: url), response: head(302))
        first.domainLookupStartDate = start
        first.domainLookupEndDate = start + 0.002
        first.connectStartDate = start + 0.002
        first.connectEndDate = start + 0.005
        first.networkProtocolName = "http/1.1"
        first.remoteAddress = "::1"
        first.remotePort = 80
        first.isReusedConnection = true
        first.countOfRequestHeaderBytesSent = 80
        first.countOfResponseHeaderBytesReceived = 120
        first.countOfResponseBodyBytesReceived = 5
        let metrics = RequestMetrics(
            taskInterval: DateInterval(start: start, duration: 0.12),
            redirectCount: 1,
            transactionMetrics: [first, TransactionMetrics(request: URLRequest(url: url))]
        )
        #expect(
            metrics.description == """
                0.120 secs, 1 redirect
                  GET http://host/ 302, http/1.1 to [::1]:80 (reused), lookup 0.002, connect 0.003, \
                sent 80+0, received 120+5 bytes
                  GET http://host/ no response, sent 0+0, received 0+0 bytes
                """
        )
    }
}
