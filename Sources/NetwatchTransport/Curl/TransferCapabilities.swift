internal import CNetwatchCurl

/// The features of the libcurl that this process has loaded.
package struct TransferCapabilities: Hashable, Sendable {
    /// The version, such as `7.88.1`.
    package let version: String
    /// The TLS library and its version, such as `OpenSSL/3.0.17`; `nil` if libcurl has no TLS.
    package let tlsLibrary: String?
    /// Whether HTTP/2 is supported.
    package let supportsHTTP2: Bool
    /// The names of the content encodings that can be decoded, as used in `Accept-Encoding`.
    package let decodableEncodings: [String]
    /// The major version of the OpenSSL that netwatch is linked with.
    package let linkedOpenSSL: UInt

    package init(
        version: String,
        tlsLibrary: String?,
        supportsHTTP2: Bool,
        decodableEncodings: [String],
        linkedOpenSSL: UInt = OpenSSL.majorVersion
    ) {
        self.version = version
        self.tlsLibrary = tlsLibrary
        self.supportsHTTP2 = supportsHTTP2
        self.decodableEncodings = decodableEncodings
        self.linkedOpenSSL = linkedOpenSSL
    }

    /// The capabilities of the loaded library.
    package static let current: TransferCapabilities = {
        let info = curl_version_info(CURLVERSION_SEVENTH).pointee
        return TransferCapabilities(
            version: String(cString: info.version),
            tlsLibrary: info.ssl_version.map { String(cString: $0) },
            supportsHTTP2: info.features & CURL_VERSION_HTTP2 != 0,
            decodableEncodings: ContentDecoder.supported
        )
    }()

    /// Whether libcurl uses OpenSSL, whose functions netwatch needs to inspect a server's certificates.
    package var usesOpenSSL: Bool { libcurlOpenSSL != nil }

    /// Why no transfer is possible: libcurl uses another major version of OpenSSL than netwatch; `nil` otherwise.
    ///
    /// netwatch passes OpenSSL objects of libcurl to functions of its own OpenSSL. The layout of these objects depends
    /// on the major version, so the process would crash in the first TLS handshake.
    package var openSSLConflict: String? {
        guard let libcurlOpenSSL, UInt(libcurlOpenSSL.prefix { $0 != "." }) != linkedOpenSSL
        else { return nil }
        return """
            libcurl \(version) uses OpenSSL \(libcurlOpenSSL), but this program is linked with OpenSSL \
            \(linkedOpenSSL): no requests are sent; both need the same major version
            """
    }

    /// The version of libcurl's OpenSSL; `nil` if libcurl uses another TLS library, or none.
    private var libcurlOpenSSL: Substring? {
        let prefix = "OpenSSL/"
        guard let tlsLibrary, tlsLibrary.hasPrefix(prefix) else { return nil }
        return tlsLibrary.dropFirst(prefix.count)
    }

    /// One sentence for each missing feature and its effect, for people. Empty if no feature is missing.
    package var shortcomings: [String] {
        var sentences: [String] = []
        if let openSSLConflict { sentences.append(openSSLConflict) }
        if tlsLibrary == nil {
            sentences.append("libcurl \(version) has no TLS: https requests fail")
        } else if !usesOpenSSL {
            sentences.append(
                """
                libcurl \(version) uses \(tlsLibrary ?? "") instead of OpenSSL: servers are verified against the \
                system's authorities only; requests with pins, custom checks, revocation lists or client certificates \
                fail
                """
            )
        }
        if !supportsHTTP2 {
            sentences.append("libcurl \(version) has no HTTP/2: requests use HTTP/1.1")
        }
        return sentences
    }
}
