internal import CNetwatchCrypto
internal import Foundation
internal import NetwatchEventLoop

/// A certificate, parsed by OpenSSL. Its owner can use it on any thread, but only on one at a time.
struct X509Certificate: ~Copyable {
    let pointer: OpaquePointer

    /// Takes ownership of a certificate.
    ///
    /// - Parameter pointer: An `X509`.
    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        X509_free(pointer)
    }

    /// Parses a certificate in DER; returns `nil` if the data is not a certificate.
    static func reading(_ der: Data) -> X509Certificate? {
        OpenSSLCoding.decoded(der, by: { d2i_X509(nil, $0, $1) }, free: { X509_free($0) })
            .map { X509Certificate(owning: $0) }
    }

    var der: Data? { OpenSSLCoding.encoded { i2d_X509(pointer, $0) } }
    var subject: String { OpenSSLCoding.text(of: X509_get_subject_name(pointer)) }
    var issuer: String { OpenSSLCoding.text(of: X509_get_issuer_name(pointer)) }
    var notBefore: Date? { OpenSSLCoding.date(X509_get0_notBefore(pointer)) }
    var notAfter: Date? { OpenSSLCoding.date(X509_get0_notAfter(pointer)) }
    /// The certificate's SubjectPublicKeyInfo in DER.
    var publicKey: Data? {
        OpenSSLCoding.encoded { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), $0) }
    }

    /// Returns whether the certificate was issued for the private key.
    func isOf(_ key: borrowing PrivateKey) -> Bool {
        callingOpenSSL { X509_check_private_key(pointer, key.pointer) == 1 }
    }

    /// Returns whether this certificate names the other certificate's subject as its issuer.
    func names(asIssuer other: borrowing X509Certificate) -> Bool {
        X509_NAME_cmp(X509_get_issuer_name(pointer), X509_get_subject_name(other.pointer)) == 0
    }

    /// Returns whether the other certificate's key signed this certificate.
    func isSigned(by other: borrowing X509Certificate) -> Bool {
        callingOpenSSL {
            guard let key = X509_get0_pubkey(other.pointer) else { return false }
            return X509_verify(pointer, key) == 1
        }
    }

    /// Returns whether the certificate names the host, by RFC 6125. As in libcurl, a wildcard is accepted only as a
    /// whole label.
    func names(host: String) -> Bool {
        callingOpenSSL {
            if IPAddress(host) != nil { return X509_check_ip_asc(pointer, host, 0) == 1 }
            let flags = netwatch_x509_no_partial_wildcards
            return X509_check_host(pointer, host, UInt(host.utf8.count), flags, nil) == 1
        }
    }
}
