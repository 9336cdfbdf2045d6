internal import CNetwatchCrypto
internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// OpenSSL. The whole process, including libcurl, shares its state.
package enum OpenSSL {
    /// Keeps OpenSSL from freeing its memory when the process calls `exit(3)`, because the engine's thread continues
    /// its handshakes until the process ends.
    ///
    /// Must be called before the first use of OpenSSL. A program that uses OpenSSL earlier must call
    /// `OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL)` itself.
    package static func prepare() { _ = isPrepared }

    private static let isPrepared = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nil) == 1
}

/// Global initialization of libcurl.
enum CurlLibrary {
    private static let initialization = RetriedOnce()

    /// Initializes libcurl once. After a failure the next call tries again.
    ///
    /// - Throws: ``SystemError`` with `ENOMEM`, the only possible reason.
    static func initialize() throws(SystemError) {
        try initialization.run { () throws(SystemError) in
            OpenSSL.prepare()
            guard curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK else {
                throw SystemError(call: "curl_global_init", errno: ENOMEM)
            }
        }
    }
}
