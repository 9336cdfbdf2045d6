internal import CNetwatchCurl

/// An evaluator of the certificates that a server presents in a handshake. It records them and the reason for a
/// refusal.
///
/// Two owners retain an evaluator. The TLS library retains it for the lifetime of the connection, because another
/// handshake may follow. The transfer for which the connection was made retains it, too. Both use it on the engine's
/// thread only.
final class TrustEvaluator {
    private(set) var presented: PresentedTrust?
    private(set) var isRefusedByCheck = false
    private let context: TrustContext
    private let host: String

    private static let index = CRYPTO_get_ex_new_index(netwatch_ex_index_ssl_ctx, 0, nil, nil, nil) {
        _,
        evaluator,
        _,
        _,
        _,
        _ in
        if let evaluator { Unmanaged<TrustEvaluator>.fromOpaque(evaluator).release() }
    }

    init(_ context: TrustContext, host: String) {
        self.context = context
        self.host = host
    }

    /// Releases the presented certificates. The connection retains this evaluator, and would keep them for its
    /// lifetime.
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
        return true
    }

    private func accepts(_ evaluation: OpaquePointer) -> Bool {
        context.prepare(evaluation)
        isRefusedByCheck = false
        let isValid = X509_verify_cert(evaluation) == 1
        let presented = PresentedTrust(evaluation, host: host)
        self.presented = presented
        guard isValid && presented.verdict.isTrusted || context.trust.anchors == nil else { return false }
        isRefusedByCheck = context.trust.check?.evaluate(presented) == false
        // libcurl reads the error of the evaluation again after the handshake.
        X509_STORE_CTX_set_error(evaluation, isRefusedByCheck ? netwatch_x509_error_application : 0)
        ERR_clear_error()
        return !isRefusedByCheck
    }
}
