internal import CNetwatchCurl
package import NetwatchEventLoop

extension EventLoop.Readiness {
    /// The flags for `curl_multi_socket_action(3)`: `CURL_CSELECT_IN`, `CURL_CSELECT_OUT` and `CURL_CSELECT_ERR`.
    ///
    /// An error also sets the read flag, as when libcurl polls by itself. The kernel may report `EPOLLERR` alone while
    /// it processes a reset (`tcp_poll` takes no lock). libcurl reports an error alone as `CURLE_SEND_ERROR` without
    /// looking at the socket, which would be the wrong failure.
    package var curlEvents: CInt {
        var events: CInt = 0
        if contains(.readable) { events |= CURL_CSELECT_IN }
        if contains(.writable) { events |= CURL_CSELECT_OUT }
        if contains(.error) || contains(.hangUp) { events |= CURL_CSELECT_ERR | CURL_CSELECT_IN }
        return events
    }
}
