internal import CNetwatchCurl
package import NetwatchEventLoop

extension EventLoop.Readiness {
    /// What `curl_multi_socket_action(3)` is told: `CURL_CSELECT_IN`, `CURL_CSELECT_OUT` and `CURL_CSELECT_ERR`.
    ///
    /// An error is also reason to read, as it is where libcurl polls by itself. The kernel may report `EPOLLERR` alone
    /// while a reset is being processed (`tcp_poll` takes no lock), and libcurl answers an error alone with
    /// `CURLE_SEND_ERROR`, without a look at the socket: the failure would be the wrong one.
    package var curlEvents: CInt {
        var events: CInt = 0
        if contains(.readable) { events |= CURL_CSELECT_IN }
        if contains(.writable) { events |= CURL_CSELECT_OUT }
        if contains(.error) || contains(.hangUp) { events |= CURL_CSELECT_ERR | CURL_CSELECT_IN }
        return events
    }
}
