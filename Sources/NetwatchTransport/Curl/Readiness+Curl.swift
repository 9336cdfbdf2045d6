internal import CNetwatchCurl
package import NetwatchEventLoop

extension EventLoop.Readiness {
    /// The readiness as the flags of `curl_multi_socket_action(3)`: `CURL_CSELECT_IN`, `CURL_CSELECT_OUT` and
    /// `CURL_CSELECT_ERR`.
    ///
    /// An error or a hang-up also sets the flag for reading. libcurl sets it, too, when it polls by itself. If libcurl
    /// gets an error alone, it reports `CURLE_SEND_ERROR` without reading the socket, and the real cause is lost. The
    /// kernel can report `EPOLLERR` alone while it processes a reset, because `tcp_poll` takes no lock.
    package var curlEvents: CInt {
        var events: CInt = 0
        if includes(.readable) { events |= CURL_CSELECT_IN }
        if includes(.writable) { events |= CURL_CSELECT_OUT }
        if includes(.error) || includes(.hangUp) { events |= CURL_CSELECT_ERR | CURL_CSELECT_IN }
        return events
    }

    /// The same as `contains` for a flag of one bit. `contains` is slow for an option set of another module, because it
    /// is not specialized.
    private func includes(_ flag: EventLoop.Readiness) -> Bool { rawValue & flag.rawValue != 0 }
}
