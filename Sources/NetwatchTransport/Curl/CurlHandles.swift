internal import CNetwatchCurl

/// Owns an easy handle.
///
/// A handle is used for one transfer only. `curl_easy_reset(3)` does not reset everything: the handle keeps the last
/// `Authorization` field (when the request could not be sent), TLS sessions that skip the trust checks, the last error
/// number and the buffer size.
struct EasyHandle: ~Copyable {
    let rawValue: UnsafeMutableRawPointer

    /// Creates a handle. Fails only when memory is exhausted.
    init?() {
        guard let handle = curl_easy_init() else { return nil }
        rawValue = handle
    }

    deinit { curl_easy_cleanup(rawValue) }

    func set(_ option: CURLoption, _ value: Int) throws(TransferFailure) {
        try check(netwatch_easy_set_long(rawValue, option, value), option)
    }

    func set(_ option: CURLoption, offset value: Int64) throws(TransferFailure) {
        try check(netwatch_easy_set_offset(rawValue, option, curl_off_t(value)), option)
    }

    func set(_ option: CURLoption, _ value: String) throws(TransferFailure) {
        try check(netwatch_easy_set_string(rawValue, option, value), option)
    }

    func set(_ option: CURLoption, pointer value: UnsafeRawPointer?) throws(TransferFailure) {
        try check(netwatch_easy_set_pointer(rawValue, option, value), option)
    }

    func set(_ option: CURLoption, blob bytes: [UInt8]) throws(TransferFailure) {
        try check(netwatch_easy_set_blob(rawValue, option, bytes, bytes.count), option)
    }

    func set(_ option: CURLoption, callback: @escaping curl_write_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_data_callback(rawValue, option, callback), option)
    }

    /// Sets the callback that creates every socket.
    func setOpenSocketCallback(_ callback: @escaping curl_opensocket_callback) throws(TransferFailure) {
        try check(
            netwatch_easy_set_open_socket_callback(rawValue, callback),
            CURLOPT_OPENSOCKETFUNCTION
        )
    }

    /// Sets the callback that closes every socket over which a request was sent. libcurl closes other sockets itself.
    func setCloseSocketCallback(_ callback: @escaping curl_closesocket_callback) throws(TransferFailure) {
        try check(
            netwatch_easy_set_close_socket_callback(rawValue, callback),
            CURLOPT_CLOSESOCKETFUNCTION
        )
    }

    /// Sets the callback for every socket that was created and is not connected yet.
    func setSocketCallback(_ callback: @escaping curl_sockopt_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_socket_callback(rawValue, callback), CURLOPT_SOCKOPTFUNCTION)
    }

    /// Sets the callback that rewinds the body.
    func setSeekCallback(_ callback: @escaping curl_seek_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_seek_callback(rawValue, callback), CURLOPT_SEEKFUNCTION)
    }

    func setDebugCallback(_ callback: @escaping curl_debug_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_debug_callback(rawValue, callback), CURLOPT_DEBUGFUNCTION)
    }

    /// Sets the callback for the TLS context of each connection before its handshake.
    func setSSLContextCallback(_ callback: @escaping curl_ssl_ctx_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_ssl_context_callback(rawValue, callback), CURLOPT_SSL_CTX_FUNCTION)
    }

    /// Sets the callback for each time that there is a connection to send the request over.
    func setRequestCallback(_ callback: @escaping curl_prereq_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_request_callback(rawValue, callback), CURLOPT_PREREQFUNCTION)
    }

    func allowHTTPOnly() throws(TransferFailure) {
        try check(netwatch_easy_allow_http_and_https_only(rawValue), CURLOPT_URL)
    }

    func long(_ info: CURLINFO) -> Int { netwatch_easy_get_long(rawValue, info) }

    func offset(_ info: CURLINFO) -> Int64 { Int64(netwatch_easy_get_offset(rawValue, info)) }

    /// Returns the string; `nil` if it is unknown or empty.
    func string(_ info: CURLINFO) -> String? {
        guard let text = netwatch_easy_get_string(rawValue, info), text.pointee != 0 else { return nil }
        return String(cString: text)
    }

    /// Returns a time, which libcurl counts in microseconds; `nil` if it is 0, which means that the event has not
    /// happened.
    func time(_ info: CURLINFO) -> Duration? {
        let microseconds = offset(info)
        return microseconds > 0 ? .microseconds(microseconds) : nil
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(TransferFailure) {
        guard code != CURLE_OK else { return }
        throw .refused(code, "option \(option.rawValue): \(String(cString: curl_easy_strerror(code)))")
    }
}

/// Owns a multi handle. Its easy handles must be removed before it is destroyed.
struct MultiHandle: ~Copyable {
    let rawValue: UnsafeMutableRawPointer

    /// Creates a handle. Fails only when memory or descriptors are exhausted.
    init?() {
        guard let handle = curl_multi_init() else { return nil }
        rawValue = handle
    }

    deinit { curl_multi_cleanup(rawValue) }
}

/// Owns a `curl_slist`, which libcurl reads but does not copy.
struct StringList: ~Copyable {
    private(set) var rawValue: UnsafeMutablePointer<curl_slist>?

    deinit { curl_slist_free_all(rawValue) }

    mutating func append(_ text: String) {
        guard let longer = curl_slist_append(rawValue, text) else { fatalError("out of memory") }
        rawValue = longer
    }
}

/// Owns the buffer for `CURLOPT_ERRORBUFFER`.
struct MessageBuffer: ~Copyable {
    let rawValue = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { rawValue.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE)) }

    deinit { rawValue.deallocate() }

    var text: String? {
        rawValue.pointee == 0 ? nil : String(cString: rawValue)
    }
}
