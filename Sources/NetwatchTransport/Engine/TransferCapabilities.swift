internal import CNetwatchCurl

/// What the libcurl of this process can do.
package struct TransferCapabilities: Hashable, Sendable {
    /// `7.88.1`.
    package let version: String
    /// Its TLS library as it names it, `OpenSSL/3.0.17`; `nil` without TLS.
    package let tlsLibrary: String?
    /// Whether it speaks HTTP/2.
    package let supportsHTTP2: Bool
    /// The codings that it can undo, as `Accept-Encoding` names them.
    package let decodableEncodings: [String]

    package init(version: String, tlsLibrary: String?, supportsHTTP2: Bool, decodableEncodings: [String]) {
        self.version = version
        self.tlsLibrary = tlsLibrary
        self.supportsHTTP2 = supportsHTTP2
        self.decodableEncodings = decodableEncodings
    }

    /// Those of the library that is loaded.
    package static let current: TransferCapabilities = {
        let info = curl_version_info(CURLVERSION_SEVENTH).pointee
        let codings = [
            ("br", CURL_VERSION_BROTLI), ("gzip", CURL_VERSION_LIBZ), ("deflate", CURL_VERSION_LIBZ),
            ("zstd", CURL_VERSION_ZSTD),
        ]
        return TransferCapabilities(
            version: String(cString: info.version),
            tlsLibrary: info.ssl_version.map { String(cString: $0) },
            supportsHTTP2: info.features & CURL_VERSION_HTTP2 != 0,
            decodableEncodings: codings.filter { info.features & $0.1 != 0 }.map(\.0)
        )
    }()

    /// Whether a callback can look at the server's certificates, which is done with OpenSSL's functions.
    package var usesOpenSSL: Bool { tlsLibrary?.hasPrefix("OpenSSL/") ?? false }

    /// What is missing, and what remains, in a sentence each; empty when all is there.
    package var shortcomings: [String] {
        var sentences: [String] = []
        if tlsLibrary == nil {
            sentences.append("libcurl \(version) has no TLS: https requests fail")
        } else if !usesOpenSSL {
            sentences.append(
                """
                libcurl \(version) uses \(tlsLibrary ?? "") in place of OpenSSL: servers are trusted by the system's \
                authorities only; requests to hosts with pins, own checks, lists of revoked certificates or client \
                certificates are refused
                """
            )
        }
        if !supportsHTTP2 {
            sentences.append("libcurl \(version) has no HTTP/2: requests go by HTTP/1.1")
        }
        return sentences
    }

    /// Why a trust cannot be kept to; `nil` when it can.
    func missing(for trust: TransferTrust) -> TransferFailure? {
        guard !usesOpenSSL, trust.needsOpenSSL else { return nil }
        let library = tlsLibrary ?? "no TLS library"
        return .refused(
            CURLE_NOT_BUILT_IN,
            """
            pins, checks, lists of revoked certificates and client certificates need libcurl with OpenSSL, and this one \
            has \(library)
            """
        )
    }
}

extension TransferTrust {
    /// Whether it is more than the system's authorities, or nobody, vouching for a server. Certificates are handed over
    /// in memory, which not every TLS library of libcurl's takes.
    fileprivate var needsOpenSSL: Bool {
        let hasOwnAnchors = if case .only = anchors { true } else { false }
        return hasOwnAnchors || check != nil || !revocationLists.isEmpty || identity != nil
    }
}
