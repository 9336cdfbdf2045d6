internal import CNetwatchCrypto
internal import CNetwatchCurl
internal import Glibc
package import NetwatchEventLoop

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

/// Process-wide settings of OpenSSL, whose state is shared by the whole process, including libcurl.
package enum OpenSSL {
    /// Keeps OpenSSL from freeing its memory when the process calls `exit(3)`. The engine's thread continues its
    /// handshakes until the process ends, and would use the freed memory.
    ///
    /// Must be called before the first use of OpenSSL. A program that uses OpenSSL before netwatch must itself call
    /// `OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL)`.
    package static func prepare() { _ = isPrepared }

    /// The major version of the OpenSSL that netwatch is linked with.
    package static var majorVersion: UInt { OpenSSL_version_num() >> 28 }

    private static let isPrepared = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nil) == 1
}

/// The process-wide initialization of libcurl.
enum CurlLibrary {
    private static let initialization = RetriedOnce()

    /// Initializes libcurl on the first call. Later calls do nothing, except that a call after a failure tries again.
    ///
    /// - Throws: ``SystemError`` with `ENOMEM`. libcurl fails to initialize only without memory.
    static func initialize() throws(SystemError) {
        try initialization.run { () throws(SystemError) in
            OpenSSL.prepare()
            guard curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK else {
                throw SystemError(call: "curl_global_init", errno: ENOMEM)
            }
        }
    }
}

/// A line of libcurl's log, from which the engine reads what libcurl does not report in any other way.
///
/// The texts differ between versions of libcurl. If a line is not recognised, both properties are `false`, and the
/// failure stays ambiguous.
struct LogLine {
    private let text: String

    init(_ bytes: some Collection<UInt8>) {
        text = String(decoding: bytes.prefix(256), as: UTF8.self)
    }

    /// Whether the line reports a GOAWAY frame that says that the server has processed no stream of the connection.
    ///
    /// libcurl 7.88.1 writes `recveived GOAWAY, error=0, last_stream=0` (sic). Later versions spell it differently and
    /// put a prefix before it.
    var refusesAllStreams: Bool {
        guard let stream = text.firstRange(of: "last_stream="), text.contains("GOAWAY") else { return false }
        return text[stream.upperBound...].prefix { $0.isNumber } == "0"
    }

    /// Whether the line reports that the server has ended the stream with `HTTP_1_1_REQUIRED`. libcurl writes
    /// `Downgrades to HTTP/1.1`.
    var requiresHTTP1: Bool { text.hasPrefix("Downgrades to HTTP/1.1") }
}

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

/// Text that represents arbitrary bytes, of a header field or of an argument, so that they can be used unchanged.
///
/// Bytes that are valid UTF-8 without private characters are represented by their text. Otherwise, each byte from 0x80
/// is represented by a private character, U+F700 plus the byte.
///
/// Different bytes have different texts, because ``encode(_:)`` is the inverse of ``decode(_:)``:
/// - If the text of the bytes has no private characters, `encode` returns its UTF-8, which are the bytes.
/// - Otherwise, a byte from 0x80 has become a private character, and each character represents one byte. `encode`
///   returns these bytes.
///
/// Each part of such a text represents the corresponding part of the bytes. In the first case, this is the UTF-8 of the
/// part. In the second case, a part without private characters is ASCII.
///
/// A text of the program may contain the same characters and mean them. It is therefore not an exact text, but
/// ``representing(_:)`` makes it one.
package enum ExactText {
    private static let base: UInt32 = 0xf700
    private static let escapes: ClosedRange<UInt32> = 0xf780...0xf7ff
    /// The first byte of each private character in UTF-8.
    private static let leadByte: UInt8 = 0xef

    package static func decode(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), !hasEscapes(text) { return text }
        var text = String.UnicodeScalarView()
        for byte in bytes {
            text.append(byte < 0x80 ? Unicode.Scalar(byte) : Unicode.Scalar(base + UInt32(byte))!)
        }
        return String(text)
    }

    /// Returns the exact text for the UTF-8 of another text.
    package static func representing(_ text: String) -> String { hasEscapes(text) ? decode(text.utf8) : text }

    /// Returns the bytes that the text represents.
    package static func encode(_ text: String) -> [UInt8] {
        guard hasEscapes(text) else { return Array(text.utf8) }
        return text.unicodeScalars.flatMap { scalar in
            escapes.contains(scalar.value) ? [UInt8(scalar.value - base)] : Array(String(scalar).utf8)
        }
    }

    /// Calls `body` with the bytes that the text represents and a zero byte.
    static func withCString<Result>(of text: String, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        guard hasEscapes(text) else { return text.withCString(body) }
        let bytes = (encode(text) + [0]).map(CChar.init(bitPattern:))
        return bytes.withUnsafeBufferPointer { body($0.baseAddress!) }
    }

    /// Returns whether the text has private characters. A text without them represents its UTF-8.
    package static func hasEscapes(_ text: String) -> Bool {
        text.utf8.contains(leadByte) && text.unicodeScalars.contains { escapes.contains($0.value) }
    }
}
