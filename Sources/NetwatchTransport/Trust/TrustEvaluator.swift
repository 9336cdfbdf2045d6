internal import CNetwatchCurl

/// An evaluator of the certificates that a server presents in a handshake. It records them and the reason for a
/// refusal.
///
/// Two owners retain an evaluator. The TLS library retains it for the lifetime of the connection, because another
/// handshake may follow. The transfer for which the connection was made retains it, too. Both use it on the engine's
/// thread only.
final class TrustEvaluator {
    /// The decision of the trust's custom check.
    private enum Decision {
        case accepted
        case refused
        /// The handshake was refused, because the program must be asked first.
        case unknown
    }

    private(set) var presented: PresentedTrust?
    private(set) var isRefusedByStapledStatus = false
    /// Whether the stapled response must report the certificate as good, because no list does.
    private var needsStapledStatus = false
    /// The decision in the last handshake; `nil` if the chain was refused before.
    private var decision: Decision?
    private let context: TrustContext
    private let host: String
    /// The server that the program has accepted for this connection.
    private var accepted: PresentedTrust?

    private static let index = CRYPTO_get_ex_new_index(netwatch_ex_index_ssl_ctx, 0, nil, nil, nil) {
        _,
        evaluator,
        _,
        _,
        _,
        _ in
        if let evaluator { Unmanaged<TrustEvaluator>.fromOpaque(evaluator).release() }
    }

    /// - Parameters:
    ///   - context: The trust.
    ///   - host: The URL's host, without brackets.
    ///   - accepted: The server that the program has accepted for this connection; `nil` if it was not asked. No
    ///     further handshake of this connection depends on whether the check still remembers the server.
    init(_ context: TrustContext, host: String, accepted: PresentedTrust?) {
        self.context = context
        self.host = host
        self.accepted = accepted
    }

    /// Whether the handshake was refused: by the check, or because the program must decide first.
    var isRefusedByCheck: Bool { decision == .refused || decision == .unknown }

    /// The question that the program must answer before the handshake can succeed; `nil` if there is none.
    var question: TrustQuestion? {
        guard decision == .unknown, let check = context.trust.check, let presented else { return nil }
        return TrustQuestion(check: check, presented: presented)
    }

    /// Releases the presented certificates. The connection retains this evaluator, and would keep them for its
    /// lifetime. It keeps only those that the program has accepted.
    func releaseCertificates() {
        presented = nil
    }

    /// Makes OpenSSL call this evaluator in every handshake of a connection. Returns `false` if OpenSSL is out of
    /// memory.
    func attach(to connection: OpaquePointer) -> Bool {
        let evaluator = Unmanaged.passRetained(self)
        guard SSL_CTX_set_ex_data(connection, Self.index, evaluator.toOpaque()) == 1 else {
            evaluator.release()
            return false
        }
        SSL_CTX_set_cert_verify_callback(
            connection,
            { evaluation, evaluator in
                let evaluator = Unmanaged<TrustEvaluator>.fromOpaque(evaluator!).takeUnretainedValue()
                return evaluator.accepts(evaluation!) ? 1 : 0
            },
            evaluator.toOpaque()
        )
        if context.trust.acceptsAnyRevocationSource { setStatusCallback(of: connection) }
        return true
    }

    /// Makes OpenSSL ask for a stapled response, and call this evaluator after the chain was verified.
    private func setStatusCallback(of connection: OpaquePointer) {
        netwatch_set_status_callback(
            connection,
            { connection, evaluator in
                let evaluator = Unmanaged<TrustEvaluator>.fromOpaque(evaluator!).takeUnretainedValue()
                return evaluator.accepts(StapledStatus(in: connection!)) ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func accepts(_ status: StapledStatus) -> Bool {
        isRefusedByStapledStatus =
            switch status {
            case .good: false
            case .absent: needsStapledStatus
            case .bad: true
            }
        return !isRefusedByStapledStatus
    }

    private func accepts(_ evaluation: OpaquePointer) -> Bool {
        context.prepare(evaluation)
        decision = nil
        let isValid = X509_verify_cert(evaluation) == 1
        noteMissingList(of: evaluation, isValid: isValid)
        let presented = PresentedTrust(evaluation, host: host)
        self.presented = presented
        guard isValid && presented.verdict.isTrusted || context.trust.anchors == nil else { return false }
        decision = decide(on: presented)
        // libcurl reads the error of the evaluation again after the handshake.
        X509_STORE_CTX_set_error(evaluation, isRefusedByCheck ? netwatch_x509_error_application : 0)
        ERR_clear_error()
        return !isRefusedByCheck
    }

    private func noteMissingList(of evaluation: OpaquePointer, isValid: Bool) {
        guard context.trust.acceptsAnyRevocationSource else { return }
        let lacksList = isValid && TrustContext.lacksCurrentList(evaluation)
        if lacksList { X509_STORE_CTX_set_error(evaluation, 0) }
        needsStapledStatus = lacksList || context.trust.revocationLists.isEmpty
    }

    private func decide(on presented: PresentedTrust) -> Decision {
        guard let check = context.trust.check, presented != accepted else { return .accepted }
        switch check.answer(to: presented) {
        case true?:
            if check.owner == .program { accepted = presented }
            return .accepted
        case false?: return .refused
        case nil: return .unknown
        }
    }
}

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
