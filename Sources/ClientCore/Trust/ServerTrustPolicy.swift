public import Foundation
internal import Glibc

/// What a server must prove before a request is sent to it. The cases are those of Alamofire 4.
///
/// Requests under equal policies share connections.
///
/// ```swift
/// let policies: [String: ServerTrustPolicy] = [
///     "api.example.com": .pinPublicKeys(
///         publicKeys: [try Certificate(contentsOf: certificateURL).publicKey],
///         validateCertificateChain: true,
///         validateHost: true
///     )
/// ]
/// let session = SessionManager(serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies))
/// ```
public enum ServerTrustPolicy: Hashable, Sendable {
    /// A certificate authority that this system trusts must have issued the server's certificate. If `validateHost` is
    /// true, the certificate must also name the host. Hosts without a policy are evaluated in this way, with
    /// `validateHost` true.
    case performDefaultEvaluation(validateHost: Bool)

    /// The server must pass the default evaluation, and its certificate must not be revoked.
    case performRevokedEvaluation(validateHost: Bool, revocationFlags: RevocationFlags)

    /// One of the pinned certificates must be in the server's chain.
    ///
    /// If `validateCertificateChain` is true, only the pinned certificates are trusted as anchors, instead of the
    /// system's authorities. They may be roots, intermediates or the server's own certificate. The chain is validated
    /// up to one of them, including validity periods and, with `validateHost`, the host.
    ///
    /// If it is false, only this is checked: whether the chain contains a pinned certificate. Neither the host nor the
    /// validity period is checked.
    case pinCertificates(certificates: [Certificate], validateCertificateChain: Bool, validateHost: Bool)

    /// One of the pinned keys must be in the server's chain.
    ///
    /// If `validateCertificateChain` is true, the chain must also pass the default evaluation. If it is false, only
    /// this is checked: whether the chain contains a pinned key. Neither the host nor the validity period is checked.
    case pinPublicKeys(publicKeys: [PublicKey], validateCertificateChain: Bool, validateHost: Bool)

    /// Every server is trusted. An attacker on the network path can then read and modify all traffic.
    case disableEvaluation

    /// A closure of the program decides whether the server is trusted; see ``customEvaluation(_:)``.
    case custom(CustomEvaluation)

    /// Returns a policy in which a closure of the program decides.
    ///
    /// The closure is called on a separate thread, and may block; see ``CustomEvaluation/Evaluate`` for its limits. The
    /// policy equals only itself, and only requests under equal policies share connections. Therefore reuse the policy
    /// rather than creating one for each request.
    ///
    /// - Parameter evaluation: Returns whether the server is trusted. The result of the default evaluation is available
    ///   as ``ServerTrust/isTrustedByDefault``.
    @preconcurrency
    public static func customEvaluation(
        _ evaluation: @escaping CustomEvaluation.Evaluate
    ) -> ServerTrustPolicy {
        .custom(CustomEvaluation(evaluation))
    }
}

/// A closure of the program that evaluates servers.
///
/// An evaluation equals only itself, because closures cannot be compared. Requests share connections only if their
/// evaluations are equal. Create one evaluation and use it for all its hosts, rather than one for each request.
public final class CustomEvaluation: Hashable, Sendable {
    /// Returns whether a server is trusted.
    ///
    /// The closure is called on a separate thread, and several calls may run at the same time. It may block: it delays
    /// only the requests that wait for its result.
    ///
    /// - The client makes two handshakes with a server that it does not know. The first one is refused before anything
    ///   of the request is sent. The client connects again when the closure has returned true.
    /// - The result true is used again for 10 minutes, in the same session, for the same host, and if the server
    ///   presents exactly the same certificates with the same ``ServerTrust/verdict-swift.property``. A session
    ///   remembers up to 64 servers for each policy and client identity. The 10 minutes begin with the call, and apply
    ///   to new connections only: an open connection stays in use afterwards.
    /// - The result false ends the requests that wait for it, and is not remembered.
    /// - Requests that wait for the same result share one call. Each of them makes its own first handshake.
    /// - A request waits for at most 30 s, or for its idle timeout or the rest of its total timeout if these are
    ///   shorter. Then it fails with `URLError.timedOut`. A call that has lasted longer than 30 s is repeated for the
    ///   next request. The newest call decides: all requests that still wait get its result, and the result of the
    ///   earlier call is ignored.
    /// - In a session, at most 4 calls are in progress for the same policy, client identity and host, and 64 for the
    ///   same policy and client identity. In the process, at most 128 are in progress. These numbers include calls that
    ///   never return. Other requests wait until a call returns.
    public typealias Evaluate = @Sendable (_ serverTrust: ServerTrust, _ host: String) -> Bool

    let evaluate: Evaluate

    /// Creates an evaluation.
    ///
    /// - Parameter evaluate: Returns whether a server is trusted.
    @preconcurrency
    public init(_ evaluate: @escaping Evaluate) {
        self.evaluate = evaluate
    }

    /// Returns whether both evaluations are the same object.
    public static func == (one: CustomEvaluation, other: CustomEvaluation) -> Bool { one === other }

    /// Hashes the identity of the object.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// The revocation checks for a server's certificate.
///
/// There are two sources: an OCSP response that the server sends during the handshake ("stapled"), and lists that the
/// program provides. Neither libcurl nor OpenSSL contacts a revocation server during a handshake. The authority that
/// runs such a server would learn which hosts the client visits, and each connection would wait for its response.
///
/// ```swift
/// let policy = ServerTrustPolicy.performRevokedEvaluation(
///     validateHost: true,
///     revocationFlags: [.stapledStatus, .lists(lists)]
/// )
/// ```
public struct RevocationFlags: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// Whether the server must staple an OCSP response of its authority (RFC 6066 §8), and this response must report
    /// the server's certificate as good.
    public let requiresStapledStatus: Bool
    /// The revocation lists. A list of the certificate's issuer that contains the certificate refuses the server.
    public let lists: [CertificateRevocationList]
    /// Whether one of ``lists`` must be of the certificate's issuer and valid now, and must not contain the certificate.
    public let requiresList: Bool
    /// Whether one method suffices that reports the certificate as good, a stapled response or one of ``lists``, and a
    /// stapled response that reports anything else refuses the server. Requirements of ``requiresStapledStatus`` and
    /// ``requiresList`` apply in addition.
    public let acceptsAnyMethod: Bool

    /// Requires a stapled OCSP response. Few servers send one. nginx, for example, needs `ssl_stapling on`.
    public static let stapledStatus = RevocationFlags(requiresStapledStatus: true)

    /// Requires that one of these lists is the list of the certificate's issuer, and that the certificate is not on it.
    public static func lists(_ lists: [CertificateRevocationList]) -> RevocationFlags {
        RevocationFlags(lists: lists, requiresList: !lists.isEmpty)
    }

    /// Requires that a stapled OCSP response or one of these lists reports the certificate as good, and that neither
    /// reports anything else. An expired list does not report a certificate as good, but still refuses the certificates
    /// on it.
    ///
    /// A server for which neither is available is refused. `kSecRevocationUseAnyAvailableMethod` of Apple's Security
    /// framework would ask the authority's servers, and accept the certificate if they do not respond.
    ///
    /// - Parameter lists: The revocation lists. Default: none, so that a stapled response is required.
    public static func anyAvailableMethod(_ lists: [CertificateRevocationList] = []) -> RevocationFlags {
        RevocationFlags(lists: lists, acceptsAnyMethod: true)
    }

    private init(
        requiresStapledStatus: Bool = false,
        lists: [CertificateRevocationList] = [],
        requiresList: Bool = false,
        acceptsAnyMethod: Bool = false
    ) {
        self.requiresStapledStatus = requiresStapledStatus
        self.lists = lists
        self.requiresList = requiresList
        self.acceptsAnyMethod = acceptsAnyMethod
    }

    /// Combines the requirements of all elements.
    public init(arrayLiteral elements: RevocationFlags...) {
        self.init(
            requiresStapledStatus: elements.contains { $0.requiresStapledStatus },
            lists: elements.flatMap(\.lists),
            requiresList: elements.contains { $0.requiresList },
            acceptsAnyMethod: elements.contains { $0.acceptsAnyMethod }
        )
    }
}

extension ServerTrustPolicy {
    /// The file name extensions of certificate files, in lower and upper case.
    private static let extensions = [
        "cer", "CER", "crt", "CRT", "der", "DER", "pem", "PEM",
    ]

    /// Returns the certificates of a bundle, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, sorted
    /// by name. A file without a certificate is skipped, whereas ``certificates(in:)-(URL)`` throws an error.
    ///
    /// - Parameter bundle: The bundle. Default: `Bundle.main`, which on Linux is the directory that contains the
    ///   program.
    public static func certificates(in bundle: Bundle = .main) -> [Certificate] {
        paths(in: bundle).flatMap { path in
            (try? Certificate.certificates(contentsOf: URL(fileURLWithPath: path))) ?? []
        }
    }

    /// Returns the public keys of a bundle, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, sorted by
    /// name: the keys of certificates, and keys without a certificate. A file without a key is skipped.
    ///
    /// - Parameter bundle: The bundle. Default: `Bundle.main`, which on Linux is the directory that contains the
    ///   program.
    public static func publicKeys(in bundle: Bundle = .main) -> [PublicKey] {
        paths(in: bundle).flatMap { path in (try? keys(at: URL(fileURLWithPath: path))) ?? [] }
    }

    /// Returns the certificates of a directory, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`,
    /// sorted by name.
    ///
    /// - Parameter directory: A directory; subdirectories are not searched.
    /// - Throws: ``InvalidCredential``, which names the first of these files that contains no certificate. If the
    ///   directory cannot be read, the error names the directory.
    public static func certificates(in directory: URL) throws(InvalidCredential) -> [Certificate] {
        var all: [Certificate] = []
        for file in try files(in: directory) { all += try Certificate.certificates(contentsOf: file) }
        return all
    }

    /// Returns the public keys of a directory, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, sorted
    /// by name: the keys of certificates, and keys without a certificate.
    ///
    /// - Parameter directory: A directory; subdirectories are not searched.
    /// - Throws: ``InvalidCredential``, which names the first of these files that contains no key. If the directory
    ///   cannot be read, the error names the directory.
    public static func publicKeys(in directory: URL) throws(InvalidCredential) -> [PublicKey] {
        var all: [PublicKey] = []
        for file in try files(in: directory) { all += try keys(at: file) }
        return all
    }

    /// Returns all keys of a file. A file often contains both the current key of a server and its next key.
    private static func keys(at file: URL) throws(InvalidCredential) -> [PublicKey] {
        let data = try CredentialFile.read(file, as: .publicKey)
        do throws(InvalidCredential) {
            let blocks = PEM.blocks(in: data)?.filter { PublicKey.pemLabels.contains($0.label) } ?? []
            // Data without a PEM block of a key is DER or invalid. If it is invalid, `PublicKey` throws the error.
            guard !blocks.isEmpty else { return [try PublicKey(data: data)] }
            var keys: [PublicKey] = []
            for block in blocks { keys.append(try PublicKey(data: block.text)) }
            return keys
        } catch {
            throw error.naming(file.path)
        }
    }

    private static func paths(in bundle: Bundle) -> [String] {
        extensions.flatMap { bundle.paths(forResourcesOfType: $0, inDirectory: nil) }.sorted()
    }

    private static func files(in directory: URL) throws(InvalidCredential) -> [URL] {
        let unreadable = { (errno: Int32) in
            InvalidCredential(.certificate, .unreadable(errno: errno), file: directory.path)
        }
        var isDirectory: ObjCBool = false
        // Foundation lists a regular file as an empty directory.
        if FileManager.default.fileExists(atPath: directory.path, isDirectory: &isDirectory),
            !isDirectory.boolValue
        {
            throw unreadable(ENOTDIR)
        }
        do {
            return try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
                .filter { extensions.contains($0.pathExtension) }
                .sorted { $0.path < $1.path }
        } catch {
            throw unreadable(error.errno)
        }
    }
}

extension Error {
    /// The `errno` underlying a Foundation error; `EIO` if there is none.
    fileprivate var errno: Int32 {
        let underlying = (self as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        return underlying?.domain == NSPOSIXErrorDomain ? Int32(underlying?.code ?? Int(EIO)) : EIO
    }
}
