internal import CNetwatchCrypto
internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

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
