internal import CNetwatchCurl

extension PresentedTrust {
    /// - Parameter evaluation: An `X509_STORE_CTX` with which `X509_verify_cert` was called.
    package init(_ evaluation: OpaquePointer, host: String) {
        let sent = [UInt8].certificates(in: X509_STORE_CTX_get0_untrusted(evaluation))
        var chain = [UInt8].certificates(in: X509_STORE_CTX_get0_chain(evaluation))
        // If the evaluation fails early, OpenSSL has built no chain.
        if chain.isEmpty, let own = [UInt8](certificate: X509_STORE_CTX_get0_cert(evaluation)) {
            chain = [own]
        }
        self.init(
            host: host,
            chain: chain + sent.filter { !chain.contains($0) },
            verdict: TrustVerdict(evaluation)
        )
    }
}

extension PresentedTrust {
    /// Returns the trust of a host without a certificate, with the code `X509_V_ERR_UNSPECIFIED`.
    package static func none(host: String) -> PresentedTrust {
        PresentedTrust(
            host: host,
            chain: [],
            verdict: TrustVerdict(code: 1, depth: 0, message: "no certificate")
        )
    }
}

extension TrustVerdict {
    fileprivate init(_ evaluation: OpaquePointer) {
        let code = X509_STORE_CTX_get_error(evaluation)
        self.init(
            code: code,
            depth: code == 0 ? 0 : X509_STORE_CTX_get_error_depth(evaluation),
            message: String(cString: X509_verify_cert_error_string(Int(code)))
        )
    }
}

extension [UInt8] {
    fileprivate static func certificates(in stack: OpaquePointer?) -> [[UInt8]] {
        guard let stack else { return [] }
        return (0..<Swift.max(0, OPENSSL_sk_num(stack))).compactMap { index in
            [UInt8](certificate: OPENSSL_sk_value(stack, index).map { OpaquePointer($0) })
        }
    }

    /// Encodes a certificate in DER.
    fileprivate init?(certificate: OpaquePointer?) {
        guard let certificate else { return nil }
        let count = i2d_X509(certificate, nil)
        guard count > 0 else { return nil }
        self.init(unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
            var end = buffer.baseAddress
            initialized = Int(Swift.max(0, i2d_X509(certificate, &end)))
        }
    }
}
