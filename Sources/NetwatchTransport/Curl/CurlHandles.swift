internal import CNetwatchCurl

/// An owner of an easy handle, libcurl's object for one transfer.
///
/// A handle keeps more from one transfer to the next than its options, and `curl_easy_reset(3)` does not reset all of it:
///
/// - the last `Authorization` field, if the request could not be sent
/// - TLS sessions, whose resumption skips the trust checks
/// - the last error number
/// - whether a server speaks only HTTP/1.0, and the number of retries
///
/// Therefore only similar transfers use the same handle, and only after a success; see ``TransferHandle`` and
/// ``Transfer/leavesCleanHandle(after:)``.
struct EasyHandle: ~Copyable {
    let rawValue: UnsafeMutableRawPointer

    /// Creates a handle. Returns `nil` only if memory is exhausted.
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
        // As an argument, the string would be copied.
        try check(value.withCString { netwatch_easy_set_string(rawValue, option, $0) }, option)
    }

    /// Sets the bytes that an ``ExactText`` represents.
    func set(_ option: CURLoption, exact value: String) throws(TransferFailure) {
        try check(ExactText.withCString(of: value) { netwatch_easy_set_string(rawValue, option, $0) }, option)
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

    /// Sets the callback that closes the sockets over which a request was sent. libcurl closes all other sockets
    /// itself.
    func setCloseSocketCallback(_ callback: @escaping curl_closesocket_callback) throws(TransferFailure) {
        try check(
            netwatch_easy_set_close_socket_callback(rawValue, callback),
            CURLOPT_CLOSESOCKETFUNCTION
        )
    }

    /// Sets the callback that libcurl calls after it has created a socket and before it connects it.
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

    /// Sets the callback that prepares the TLS context of each connection. libcurl calls it before the handshake.
    func setSSLContextCallback(_ callback: @escaping curl_ssl_ctx_callback) throws(TransferFailure) {
        try check(netwatch_easy_set_ssl_context_callback(rawValue, callback), CURLOPT_SSL_CTX_FUNCTION)
    }

    /// Sets the callback that libcurl calls before each sending of the request, when the connection for it is ready.
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

    /// Returns the time from libcurl's start of the transfer to an event; `nil` if the event has not happened. libcurl
    /// counts microseconds and reports 0 for an event that has not happened.
    func time(_ info: CURLINFO) -> Duration? {
        let microseconds = offset(info)
        return microseconds > 0 ? .microseconds(microseconds) : nil
    }

    /// Whether the TLS library has received data over the current connection that libcurl has not read.
    var hasUnreadTLSData: Bool {
        guard TransferCapabilities.current.usesOpenSSL,
            let connection = netwatch_easy_get_tls_connection(rawValue)
        else { return false }
        return SSL_has_pending(OpaquePointer(connection)) == 1
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(TransferFailure) {
        guard code != CURLE_OK else { return }
        throw .refused(code, "CURLoption \(option.rawValue): \(String(cString: curl_easy_strerror(code)))")
    }
}

/// An owner of a multi handle, libcurl's object for concurrent transfers. All its easy handles must be removed before
/// it is destroyed.
struct MultiHandle: ~Copyable {
    let rawValue: UnsafeMutableRawPointer

    /// Creates a handle. Returns `nil` only if memory or descriptors are exhausted.
    init?() {
        guard let handle = curl_multi_init() else { return nil }
        rawValue = handle
    }

    deinit { curl_multi_cleanup(rawValue) }
}

/// An owner of a `curl_slist`. libcurl does not copy the list, so the owner must outlive its use.
struct StringList: ~Copyable {
    private(set) var rawValue: UnsafeMutablePointer<curl_slist>?

    deinit { curl_slist_free_all(rawValue) }

    /// Appends a text as UTF-8, or the bytes that an ``ExactText`` represents.
    mutating func append(_ text: String, isExact: Bool = false) {
        let longer =
            isExact
            ? ExactText.withCString(of: text) { curl_slist_append(rawValue, $0) }
            : curl_slist_append(rawValue, text)
        guard let longer else { fatalError("out of memory") }
        rawValue = longer
    }
}

/// An owner of the buffer into which libcurl writes its error message (`CURLOPT_ERRORBUFFER`).
struct MessageBuffer: ~Copyable {
    let rawValue = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { rawValue.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE)) }

    deinit { rawValue.deallocate() }

    func clear() { rawValue.pointee = 0 }

    var text: String? {
        rawValue.pointee == 0 ? nil : String(cString: rawValue)
    }
}
