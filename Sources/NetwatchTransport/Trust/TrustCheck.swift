internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A custom check of a server's certificates. It is equal only to itself, because closures cannot be compared.
///
/// There are two kinds:
///
/// - The client's own checks, such as pins, run in the handshake, on the engine's thread.
/// - The program's checks may block, so they never run there. The engine refuses the handshake before anything is sent,
///   calls the check on a separate thread, and connects again if the check has accepted the server. OpenSSL cannot wait
///   for the answer: libcurl fails with code 35 if the callback uses `SSL_set_retry_verify`.
package final class TrustCheck: Hashable, Sendable {
    /// Returns whether the server is accepted.
    package typealias Evaluate = @Sendable (PresentedTrust) -> Bool

    /// The owner of a check's code.
    package enum Owner: Sendable {
        /// The client's own code, which does not block. The engine calls it on its own thread in every handshake.
        case client
        /// The program's code, which may block. It may be called on several threads at the same time. A server that it
        /// accepts stays accepted for ``AcceptedServers/lifetime``. ``TrustQuestions`` limits the calls that do not
        /// return.
        case program
    }

    let owner: Owner
    /// Returns whether the server is accepted. May block if ``owner`` is the program.
    package let evaluate: Evaluate
    private let accepted = Lock(AcceptedServers())

    /// Creates a check.
    ///
    /// - Parameters:
    ///   - owner: Whose code `evaluate` is. Default: the client's.
    ///   - evaluate: Returns whether the server is accepted.
    package init(by owner: Owner = .client, _ evaluate: @escaping Evaluate) {
        self.owner = owner
        self.evaluate = evaluate
    }

    /// Returns the answer in a handshake; `nil` if the program must be asked.
    func answer(to presented: PresentedTrust) -> Bool? {
        guard owner == .program else { return evaluate(presented) }
        return accepted.withLock { $0.contains(presented, at: .now) } ? true : nil
    }

    /// Remembers a server that the program has accepted.
    ///
    /// - Parameter start: The time at which the program's code was called.
    func remember(_ server: PresentedTrust, since start: BootInstant) {
        accepted.withLock { $0.insert(server, at: start) }
    }

    package static func == (one: TrustCheck, other: TrustCheck) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// The servers that a program's check has accepted. A value without I/O.
///
/// An entry is valid only for the same host, the same certificates in the same order, byte by byte, and the same
/// verdict of OpenSSL. So a server that presents other certificates, or whose certificate has expired meanwhile, is not
/// in the list. A rejected server is never remembered.
struct AcceptedServers {
    /// The time for which handshakes with an accepted server need no question, from the start of the program's code.
    /// Open connections outlive it. A program that changes its mind, for example because of a new revocation list, is
    /// asked again after this time.
    static let lifetime = Duration.seconds(600)
    /// The maximum number of servers. With more, the one whose lifetime ends first is forgotten. OpenSSL accepts 100
    /// KiB (102,400 bytes) of certificates from a server. So the list has at most 6.6 MB in addition to roots that were
    /// found locally, and usually less than 0.5 MB.
    static let capacity = 64

    private var expirations: [PresentedTrust: BootInstant] = [:]

    func contains(_ server: PresentedTrust, at now: BootInstant) -> Bool {
        expirations[server].map { now < $0 } ?? false
    }

    mutating func insert(_ server: PresentedTrust, at now: BootInstant) {
        expirations[server] = now + Self.lifetime
        guard expirations.count > Self.capacity else { return }
        if let oldest = expirations.min(by: { $0.value < $1.value }) { expirations[oldest.key] = nil }
    }
}

/// A question that only the program can answer: whether its check accepts a server.
struct TrustQuestion: Hashable, Sendable {
    let check: TrustCheck
    let presented: PresentedTrust
}

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
