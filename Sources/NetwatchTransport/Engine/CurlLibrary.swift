internal import CNetwatchCrypto
internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// OpenSSL, which libcurl and this library share with the rest of the process.
package enum OpenSSL {
    /// Keeps OpenSSL from freeing what it holds when the process calls `exit(3)`: the engine's thread goes on with its
    /// handshakes until the process is gone. Comes before the first use of OpenSSL; a program that has used it before,
    /// on its own account, has to call `OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL)` itself.
    package static func prepare() { _ = isPrepared }

    private static let isPrepared = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nil) == 1
}

/// libcurl as a whole.
enum CurlLibrary {
    private static let isInitialized = Mutex(false)

    /// Initializes libcurl, once; after a failure the next call tries again.
    ///
    /// - Throws: ``SystemError`` with `ENOMEM`, the one reason there is.
    static func initialize() throws(SystemError) {
        let isReady = isInitialized.withLock { isInitialized in
            OpenSSL.prepare()
            if !isInitialized { isInitialized = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK }
            return isInitialized
        }
        guard isReady else { throw SystemError(call: "curl_global_init", errno: ENOMEM) }
    }
}
