internal import CNetwatchCurl

/// What the OCSP response that a server has stapled (RFC 6066 §8) says about its certificate.
enum StapledStatus {
    /// The server has stapled no response.
    case absent
    /// The response is valid now, its authority has signed it, and it reports the certificate as good.
    case good
    /// Any other response.
    case bad

    /// The tolerance for different clocks, in seconds, as in libcurl.
    private static let tolerance = 300

    /// Reads the response in a handshake.
    ///
    /// - Parameter connection: The `SSL` of the handshake. The server's chain must have been verified.
    init(in connection: OpaquePointer) {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = withUnsafeMutablePointer(to: &bytes) {
            SSL_ctrl(connection, netwatch_ctrl_get_status_response, 0, $0)
        }
        if let bytes, count > 0 {
            self = Self.isGood(UnsafePointer(bytes), count, connection) ? .good : .bad
            ERR_clear_error()
        } else {
            self = .absent
        }
    }

    private static func isGood(_ bytes: UnsafePointer<UInt8>, _ count: Int, _ connection: OpaquePointer)
        -> Bool
    {
        var next: UnsafePointer<UInt8>? = bytes
        guard let response = d2i_OCSP_RESPONSE(nil, &next, count) else { return false }
        defer { OCSP_RESPONSE_free(response) }
        guard OCSP_response_status(response) == 0, let basic = OCSP_response_get1_basic(response) else {
            return false
        }
        defer { OCSP_BASICRESP_free(basic) }
        let chain = SSL_get0_verified_chain(connection)
        let store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(connection))
        guard OCSP_basic_verify(basic, chain, store, 0) == 1, let id = certificateID(chain) else {
            return false
        }
        defer { OCSP_CERTID_free(id) }
        var status: CInt = -1
        var from: OpaquePointer?
        var until: OpaquePointer?
        return OCSP_resp_find_status(basic, id, &status, nil, nil, &from, &until) == 1 && status == 0
            && OCSP_check_validity(from, until, tolerance, -1) == 1
    }

    /// Returns the id of the server's certificate, which the caller must free; `nil` if the chain has no issuer.
    ///
    /// The id contains SHA-1 hashes, as in nearly all OCSP responses (RFC 5019 §2.1.1).
    private static func certificateID(_ chain: OpaquePointer?) -> OpaquePointer? {
        guard let chain, OPENSSL_sk_num(chain) > 1, let own = OPENSSL_sk_value(chain, 0),
            let issuer = OPENSSL_sk_value(chain, 1)
        else { return nil }
        return OCSP_cert_to_id(EVP_sha1(), OpaquePointer(own), OpaquePointer(issuer))
    }
}
