internal import CNetwatchCurl
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import Testing

/// The flags that libcurl receives for the events of a socket.
@Suite struct ReadinessTests {
    @Test func `readable and writable are passed on`() {
        #expect(EventLoop.Readiness.readable.curlEvents == CURL_CSELECT_IN)
        #expect(EventLoop.Readiness.writable.curlEvents == CURL_CSELECT_OUT)
        #expect(EventLoop.Readiness([.readable, .writable]).curlEvents == CURL_CSELECT_IN | CURL_CSELECT_OUT)
        #expect(EventLoop.Readiness().curlEvents == 0)
    }

    @Test(arguments: [EventLoop.Readiness.error, .hangUp, [.error, .hangUp], [.error, .writable]])
    func `an error also makes the socket readable, so that the read reports it`(
        readiness: EventLoop.Readiness
    ) {
        #expect(
            readiness.curlEvents & (CURL_CSELECT_IN | CURL_CSELECT_ERR) == CURL_CSELECT_IN | CURL_CSELECT_ERR
        )
    }
}
